// Puts @NAME@ behind protocol 1 of gguf-conformance: a line of JSON comes in, a line of JSON goes out.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"unicode/utf8"
)

type object = map[string]any

// reject is the refusal of an input: a verdict on the file. The classes are listed in docs/protocol.md; "other" fits all.
type reject struct {
	Class   string `json:"class"`
	Message string `json:"message"`
	At      int    `json:"at"`
}

// ---- The library. Replace all of this part: call yours in header, and give what it found in this form. -----------------------

// Of the numbers among the values, by the number of the type: name and bytes.
var names = []string{"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "array", "u64", "i64", "f64"}
var widths = []uint64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

const str, array = 8, 9

// reader is a little reader of the header, so that the adapter works before your library is in it. It panics with a *reject.
type reader struct {
	data []byte
	at   int
}

func (r *reader) refuse(class, format string, args ...any) {
	panic(&reject{class, fmt.Sprintf(format, args...), r.at})
}

func (r *reader) take(count uint64, class string) []byte {
	if left := uint64(len(r.data) - r.at); count > left {
		r.refuse(class, "%d bytes are due, %d are left", count, left)
	}
	r.at += int(count)
	return r.data[r.at-int(count) : r.at]
}

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4, "truncated")) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8, "truncated")) }
func (r *reader) text() any   { return text(r.take(r.u64(), "bad-length")) }

func (r *reader) kind(arrays bool) uint32 {
	kind := r.u32()
	if int(kind) >= len(names) || (kind == array && !arrays) {
		r.refuse("bad-value-type", "value type %d", kind)
	}
	return kind
}

func (r *reader) value(kind uint32) any {
	if kind == str {
		return r.text()
	}
	raw := make([]byte, 8)
	copy(raw, r.take(widths[kind], "truncated"))
	bits := binary.LittleEndian.Uint64(raw)
	switch names[kind] {
	case "f32", "f64":
		return fmt.Sprintf("0x%0*x", 2*widths[kind], bits) // the bits, never a number
	case "bool":
		return fmt.Sprint(bits != 0)
	case "i8", "i16", "i32", "i64":
		shift := 64 - 8*widths[kind]
		return fmt.Sprint(int64(bits<<shift) >> shift)
	}
	return fmt.Sprint(bits)
}

func (r *reader) pair() object {
	key, kind := r.text(), r.kind(true)
	if kind != array {
		return object{"key": key, "type": names[kind], "value": r.value(kind)}
	}
	items, count := r.kind(false), r.u64()
	if left := uint64(len(r.data) - r.at); count > left {
		r.refuse("bad-length", "%d elements in %d bytes", count, left)
	}
	values := make([]any, 0, count) // not nil, which JSON would write as null
	for ; count > 0; count-- {
		values = append(values, r.value(items))
	}
	return object{"key": key, "type": "array", "value": values, "items": names[items]}
}

func (r *reader) tensor() object {
	name, dims := r.text(), []string{}
	for left := r.u32(); left > 0; left-- {
		dims = append(dims, fmt.Sprint(r.u64()))
	}
	return object{"name": name, "dims": dims, "type": r.u32(), "offset": fmt.Sprint(r.u64())}
}

func header(path string) object {
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err) // answered by error: it is no verdict on the file
	}
	r, alignment := &reader{data: data}, uint64(32)
	if string(r.take(4, "truncated")) != "GGUF" {
		r.refuse("bad-magic", "no GGUF at the start")
	}
	version := r.u32()
	if version != 2 && version != 3 {
		r.refuse("bad-version", "version %d", version)
	}
	count, kv, tensors := r.u64(), []object{}, []object{}
	for left := r.u64(); left > 0; left-- {
		kv = append(kv, r.pair())
		if last := kv[len(kv)-1]; last["key"] == "general.alignment" && last["type"] == "u32" {
			fmt.Sscan(last["value"].(string), &alignment)
		}
	}
	if alignment == 0 || alignment&(alignment-1) != 0 {
		r.refuse("bad-alignment", "alignment %d", alignment)
	}
	for left := count; left > 0; left-- {
		tensors = append(tensors, r.tensor())
	}
	offset := uint64(r.at)
	if count > 0 {
		offset = (offset + alignment - 1) / alignment * alignment
	}
	return object{"version": version, "alignment": alignment, "data_offset": offset, "kv": kv, "tensors": tensors}
}

// ---- The protocol. What you add to hello and to do is asked; what is not there is never asked, nor counted against you. ------

var hello = object{"name": "@NAME@", "version": "0", "language": "go", "protocol": 1, "ops": object{"header": object{}}}

type request struct {
	Seq  int    `json:"seq"`
	Op   string `json:"op"`
	Path string `json:"path"`
}

// text gives bytes as the text that they are, or else by their hex digits.
func text(raw []byte) any {
	if utf8.Valid(raw) {
		return string(raw)
	}
	return object{"hex": hex.EncodeToString(raw)}
}

// do gives the field of the answer and what stands in it. Only a *reject is a verdict on the input; all else is an error.
func do(asked request) (field string, content any) {
	defer func() {
		if problem := recover(); problem != nil {
			field, content = "error", fmt.Sprint(problem)
			if refused, ok := problem.(*reject); ok {
				field, content = "reject", refused
			}
		}
	}()
	switch asked.Op {
	case "hello":
		return "ok", hello
	case "header":
		return "ok", header(asked.Path)
	}
	return "unsupported", "op " + asked.Op
}

func main() {
	answers := os.Stdout
	os.Stdout = os.Stderr // what the library prints goes to stderr: stdout is for answers alone
	for lines := bufio.NewReader(os.Stdin); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // stdin has ended
		}
		asked := request{}
		field, content := "error", any("not a request")
		if json.Unmarshal(line, &asked) == nil {
			field, content = do(asked)
		}
		answer, _ := json.Marshal(object{"seq": asked.Seq, field: content})
		answers.Write(append(answer, '\n'))
	}
}
