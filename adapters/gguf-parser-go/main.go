// gguf-parser-go behind protocol 1: a request a line on stdin, an answer a line on stdout.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	gguf "github.com/gpustack/gguf-parser-go"
)

type request struct {
	Seq  int64  `json:"seq"`
	Op   string `json:"op"`
	Path string `json:"path"`
}

type rejection struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

type answer struct {
	Seq    int64      `json:"seq"`
	Ok     any        `json:"ok,omitempty"`
	Reject *rejection `json:"reject,omitempty"`
	Error  string     `json:"error,omitempty"`
}

// The parts of the library's messages, and the class that each stands for; the first that fits counts. "count too large for
// remaining bytes" is of none: whether the count is wrong or the file cut short cannot be told.
var classes = [][2]string{
	{"invalid GGUF format", "bad-magic"},
	{"unsupported format", "bad-magic"},
	{"unsupported GGUF version", "bad-version"},
	{"read string: length", "bad-length"},
	{"read array: length", "bad-length"},
	{"invalid value type", "bad-value-type"},
	{"invalid type", "bad-value-type"},
	{"invalid n dimensions", "bad-dims"},
	{"type is currently unsupported", "bad-tensor-type"},
	{"tensor data needs", "missing-data"},
}

func classOf(err error) string {
	for _, entry := range classes {
		if strings.Contains(err.Error(), entry[0]) {
			return entry[1]
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "truncated"
	}
	return "other"
}

// The alignment is no part of what the library gives, and the data start at an aligned place even where there are none.
func hello() any {
	view := map[string]any{"data_offset": "tensors", "hides": []string{"alignment"}}
	return map[string]any{
		"name": "gguf-parser-go", "version": "0.28.1", "language": "go", "protocol": 1,
		"ops": map[string]any{"header": view},
	}
}

func reply(asked request) answer {
	switch asked.Op {
	case "hello":
		return answer{Seq: asked.Seq, Ok: hello()}
	case "header":
		file, err := gguf.ParseGGUFFile(asked.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return answer{Seq: asked.Seq, Error: err.Error()}
		}
		if err != nil {
			return answer{Seq: asked.Seq, Reject: &rejection{classOf(err), err.Error()}}
		}
		return answer{Seq: asked.Seq, Ok: header(file)}
	}
	return answer{Seq: asked.Seq, Error: "no op " + asked.Op}
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			panic(err)
		}
		if err := answers.Encode(reply(asked)); err != nil {
			panic(err)
		}
	}
}
