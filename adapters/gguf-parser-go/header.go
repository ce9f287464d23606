package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	gguf "github.com/gpustack/gguf-parser-go"
)

type pair struct {
	Key   any    `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"`
	Items string `json:"items,omitempty"`
}

type tensor struct {
	Name   any      `json:"name"`
	Type   uint32   `json:"type"`
	Dims   []string `json:"dims"`
	Offset string   `json:"offset"`
	Nbytes string   `json:"nbytes"`
}

type inner struct {
	Items string `json:"items"`
	Value []any  `json:"value"`
}

// Names of the value types, by their number in the file.
var kinds = []string{"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "array", "u64", "i64", "f64"}

func header(file *gguf.GGUFFile) any {
	pairs := []pair{}
	for _, kv := range file.Header.MetadataKV {
		pairs = append(pairs, pairOf(kv))
	}
	tensors := []tensor{}
	for _, info := range file.TensorInfos {
		tensors = append(tensors, tensorOf(info))
	}
	return map[string]any{
		"version": uint32(file.Header.Version), "alignment": 0, "data_offset": file.TensorDataStartOffset,
		"kv": pairs, "tensors": tensors,
	}
}

func pairOf(kv gguf.GGUFMetadataKV) pair {
	shown := pair{Key: text(kv.Key), Type: kinds[kv.ValueType]}
	if array, is := kv.Value.(gguf.GGUFMetadataKVArrayValue); is {
		shown.Items, shown.Value = name(array.Type), elements(array)
	} else {
		shown.Value = scalar(kv.Value)
	}
	return shown
}

func tensorOf(info gguf.GGUFTensorInfo) tensor {
	dims := []string{}
	for _, dim := range info.Dimensions {
		dims = append(dims, strconv.FormatUint(dim, 10))
	}
	offset, nbytes := strconv.FormatUint(info.Offset, 10), strconv.FormatUint(info.Bytes(), 10)
	return tensor{text(info.Name), uint32(info.Type), dims, offset, nbytes}
}

// The library takes any number for the type of an empty array's elements.
func name(kind gguf.GGUFMetadataValueType) string {
	if int(kind) < len(kinds) {
		return kinds[kind]
	}
	return ""
}

func elements(array gguf.GGUFMetadataKVArrayValue) []any {
	shown := make([]any, 0, len(array.Array))
	for _, value := range array.Array {
		if nested, is := value.(gguf.GGUFMetadataKVArrayValue); is {
			shown = append(shown, inner{name(nested.Type), elements(nested)})
		} else {
			shown = append(shown, scalar(value))
		}
	}
	return shown
}

func scalar(value any) any {
	switch v := value.(type) {
	case string:
		return text(v)
	case float32:
		return fmt.Sprintf("0x%08x", math.Float32bits(v))
	case float64:
		return fmt.Sprintf("0x%016x", math.Float64bits(v))
	}
	return fmt.Sprint(value)
}

func text(raw string) any {
	if utf8.ValidString(raw) {
		return raw
	}
	return map[string]string{"hex": hex.EncodeToString([]byte(raw))}
}
