package cri

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// memoryConn is a connection to a runtime that returns the same statistics for every container.
type memoryConn struct {
	grpc.ClientConnInterface
	memory *api.MemoryUsage
}

func (c memoryConn) Invoke(_ context.Context, _ string, _, response any, _ ...grpc.CallOption) error {
	response.(*api.ContainerStatsResponse).Stats = &api.ContainerStats{Memory: c.memory}
	return nil
}

func TestContainerMemory(t *testing.T) {
	for name, test := range map[string]struct {
		memory *api.MemoryUsage
		want   int64
		fails  bool
	}{
		"usage":            {memory: &api.MemoryUsage{UsageBytes: &api.UInt64Value{Value: 9}, WorkingSetBytes: &api.UInt64Value{Value: 5}}, want: 9},
		"only working set": {memory: &api.MemoryUsage{WorkingSetBytes: &api.UInt64Value{Value: 5}}, want: 5},
		"usage is 0":       {memory: &api.MemoryUsage{UsageBytes: &api.UInt64Value{}}},
		"neither":          {memory: &api.MemoryUsage{}, fails: true},
		"no memory":        {fails: true},
	} {
		got, err := New(memoryConn{memory: test.memory}, Options{}).ContainerMemory(t.Context(), "c")
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: got %d bytes and error %v; want %d bytes and an error: %t", name, got, err, test.want, test.fails)
		}
	}
}
