package cri

import (
	"encoding"
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// codec is gRPC's protobuf codec with two changes. First, it reads a message into a buffer
// of the message's size. gRPC's own codec uses a buffer of 1 MiB for every list longer than
// 32 KiB and retains it. Second, a type of podd can implement encoding.BinaryUnmarshaler to
// decode only the fields that it needs.
type codec struct{}

// Name returns "", so that requests have the content type application/grpc, which means
// protobuf. gRPC appends any other name as a subtype. CRI-O rejects application/grpc+proto,
// because it compares the whole content type on the socket that also serves its streaming
// endpoints.
func (codec) Name() string { return "" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("encoding a CRI request: %T is not a protobuf message", v)
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
	return fmt.Errorf("decoding a CRI response: %T is not a protobuf message", v)
}
