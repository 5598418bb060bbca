package cri

import (
	"encoding"
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// codec is gRPC's protobuf codec but for two things. A message is read into a
// buffer of its own size: gRPC's takes one of 1 MiB for every list longer than
// 32 KiB and keeps it. And a type of ours can read a message's bytes itself and
// leave most of them lying.
type codec struct{}

// Name is the content subtype that every CRI server knows.
func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("encoding a %T: not a message", v)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b := data.Materialize()
	switch m := v.(type) {
	case encoding.BinaryUnmarshaler:
		return m.UnmarshalBinary(b)
	case proto.Message:
		return proto.Unmarshal(b, m)
	}
	return fmt.Errorf("decoding a %T: not a message", v)
}
