package cri

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// statsConn is a connection to a runtime with one exited container.
type statsConn struct{ grpc.ClientConnInterface }

func (statsConn) Invoke(_ context.Context, _ string, _, response any, _ ...grpc.CallOption) error {
	response.(*api.ListContainerStatsResponse).Stats = []*api.ContainerStats{{
		Attributes:    &api.ContainerAttributes{Id: "c1", Labels: map[string]string{runtime.LabelPodUID: "u1"}},
		WritableLayer: &api.FilesystemUsage{UsedBytes: &api.UInt64Value{Value: 9}},
	}}
	return nil
}

// TestContainerUsages_Exited checks that the usage of an exited container contains its pod and its
// layer, and neither CPU time nor memory.
func TestContainerUsages_Exited(t *testing.T) {
	usages, err := New(statsConn{}, Options{}).ContainerUsages(t.Context(), []string{"i"})
	u := usages["c1"]
	if err != nil || len(usages) != 1 || u.PodUID != "u1" || u.WritableLayer == nil || u.WritableLayer.UsedBytes != 9 || !u.At.IsZero() {
		t.Errorf("got %+v, error %v; want a layer of 9 bytes of pod u1", usages, err)
	}
}
