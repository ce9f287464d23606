// Shows with the library alone what the harness found: go run ./confirm
//
// Each file is made here and read in a process of its own, since a panic of Go's runtime ends the process.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	gguf "github.com/gpustack/gguf-parser-go"
)

type builder struct{ bytes []byte }

func (b *builder) u32(n uint32) *builder {
	b.bytes = binary.LittleEndian.AppendUint32(b.bytes, n)
	return b
}

func (b *builder) u64(n uint64) *builder {
	b.bytes = binary.LittleEndian.AppendUint64(b.bytes, n)
	return b
}

func (b *builder) str(text string) *builder {
	b.u64(uint64(len(text)))
	b.bytes = append(b.bytes, text...)
	return b
}

func (b *builder) pad(to int) *builder {
	for len(b.bytes) < to {
		b.bytes = append(b.bytes, 0)
	}
	return b
}

func head(tensors, pairs uint64) *builder {
	b := &builder{[]byte("GGUF")}
	return b.u32(3).u64(tensors).u64(pairs)
}

func tensor(kind uint32, dims ...uint64) []byte {
	b := head(1, 0).str("t").u32(uint32(len(dims)))
	for _, dim := range dims {
		b.u64(dim)
	}
	return b.u32(kind).u64(0).pad(128).bytes
}

func nested(levels int, length func(remaining int) uint64) []byte {
	b := head(0, 1).str("a").u32(9)
	for level := range levels {
		b.u32(9).u64(length((levels-level-1)*12 + 12))
	}
	return b.u32(0).u64(0).bytes
}

type file struct {
	what  string
	bytes []byte
}

func files() []file {
	one := func(int) uint64 { return 1 }
	return []file{
		{"strings with blanks at their ends: 'a', ' ', a line feed", head(0, 1).str("a").u32(9).u32(8).u64(3).str("a ").str(" ").str("\n").bytes},
		{"one pair, a u8: a sound file of 38 bytes", append(head(0, 1).str("a").u32(0).bytes, 7)},
		{"the pair split.no, a u32 of 5", head(0, 1).str("split.no").u32(4).u32(5).pad(64).bytes},
		{"general.alignment is 0", head(0, 1).str("general.alignment").u32(4).u32(0).bytes},
		{"general.alignment is a u64 of 32", head(0, 1).str("general.alignment").u32(10).u64(32).bytes},
		{"a tensor of type 4, which ggml removed", tensor(4, 32)},
		{"an F32 tensor of 2^32 by 2^32", tensor(0, 1<<32, 1<<32)},
		{"two I8 tensors of 2^63 bytes each, 0 bytes of data", head(2, 0).str("t").u32(1).u64(1 << 63).u32(24).u64(0).str("u").u32(1).u64(1 << 63).u32(24).u64(0).pad(96).bytes},
		{"the magic spelled FUGG, the rest big-endian", []byte("FUGG\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
		{"the same with the magic GGUF, as gguf-py writes a big-endian file", []byte("GGUF\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
		{"an F32 tensor without its data", head(1, 0).str("t").u32(1).u64(4).u32(0).u64(0).pad(64).bytes},
		{"a million arrays within each other", nested(1000000, one)},
		{"8,000 arrays, each said to have an element for each byte that is left", nested(8000, func(remaining int) uint64 { return uint64(remaining) })},
	}
}

func show(which string) {
	for _, file := range files() {
		if file.what != which {
			continue
		}
		path := os.Args[2]
		if err := os.WriteFile(path, file.bytes, 0o600); err != nil {
			panic(err)
		}
		parsed, err := gguf.ParseGGUFFile(path)
		if err != nil {
			fmt.Printf("refused: %v\n", err)
			return
		}
		fmt.Printf("accepted: version %d, %d tensors of %d bytes", parsed.Header.Version, len(parsed.TensorInfos), parsed.TensorInfos.Bytes())
		for _, pair := range parsed.Header.MetadataKV {
			fmt.Printf(", %s", pair.Key)
			if array, is := pair.Value.(gguf.GGUFMetadataKVArrayValue); is && array.Type == gguf.GGUFMetadataValueTypeString {
				fmt.Printf(" is %q", array.Array)
			}
		}
		fmt.Println()
	}
}

func main() {
	if len(os.Args) == 3 {
		show(os.Args[1])
		return
	}
	folder, err := os.MkdirTemp("", "gguf-parser-go")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	for _, file := range files() {
		start := time.Now()
		child := exec.Command(os.Args[0], file.what, folder+"/case.gguf")
		said, err := child.CombinedOutput()
		first, _, _ := strings.Cut(string(said), "\n")
		fmt.Printf("%s (%d bytes)\n    %.110s\n", file.what, len(file.bytes), first)
		used := child.ProcessState.SysUsage().(*syscall.Rusage).Maxrss / 1024
		if took := time.Since(start).Seconds(); err != nil || took > 1 || used > 500 {
			fmt.Printf("    %v, %.1f s, %d MiB\n", child.ProcessState, took, used)
		}
	}
}
