package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// serveUsage is like poddtest.ServeShop, but the podd also serves the resource usage of the node and of
// each pod.
func serveUsage(t *testing.T) *poddtest.Podd {
	t.Helper()
	f := poddtest.ServeShop(t)
	v := *f.View()
	v.NodeObject = v.NodeObject.DeepCopy()
	v.NodeObject.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}
	v.NodeObject.Status.Capacity = v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("2Gi")}
	v.Revision++
	f.Publish(&v)
	amounts := func(milli, mebi uint64) server.ResourceUsage {
		return server.ResourceUsage{NanoCores: new(milli * 1e6), WorkingSetBytes: mebi << 20}
	}
	f.OnUsage = func(context.Context) (*server.Usage, error) {
		return &server.Usage{At: poddtest.At, Node: amounts(500, 256), Pods: map[server.Key]server.PodUsage{
			{Namespace: "default", Name: "web-n1"}:     {Containers: map[string]server.ResourceUsage{"app": amounts(3, 40)}},
			{Namespace: "default", Name: "db-n1"}:      {Containers: map[string]server.ResourceUsage{"pg": amounts(120, 7)}},
			{Namespace: "kube-system", Name: "dns-n1"}: {Containers: map[string]server.ResourceUsage{"app": amounts(1, 2), "side": amounts(2, 1)}},
		}}, nil
	}
	return f
}

func TestTop_Goldens(t *testing.T) {
	for name, words := range map[string]string{
		"top_pods":         "pods",
		"top_all":          "po -A --sum",
		"top_containers":   "pod -A --containers --sort-by cpu",
		"top_memory":       "pods --sort-by memory --no-headers",
		"top_named":        "pod dns web-n1",
		"top_label":        "pods -l app=web",
		"top_none":         "pods -n nowhere",
		"top_json":         "pod web -o json",
		"top_yaml":         "pods -n kube-system -o yaml",
		"top_node":         "node",
		"top_capacity":     "nodes n1 --show-capacity",
		"top_no_node":      "node n2",
		"top_no_pod":       "pod wbe",
		"top_bad_flag":     "node --sum",
		"top_bad_resource": "secrets",
	} {
		got := podd(t, serveUsage(t), append([]string{"top"}, strings.Fields(words)...)...)
		compareGolden(t, name, fmt.Sprintf("%s-- stderr, code %d --\n%s", got.Out, got.Code, got.Err))
	}
}

// TestTop_WaitsForSample checks that podd top waits, for a limited time, for the usage of a container
// that has just started. Its usage is missing at first, because a sample of CPU usage requires two
// readings.
func TestTop_WaitsForSample(t *testing.T) {
	f := serveUsage(t)
	v := *f.View()
	started := poddtest.SetRunning(poddtest.NewPod("new.yaml", 1, "new", "app"))
	// The time is in the future, because podd top waits only for containers that have just started.
	started.Pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time = time.Now().Add(time.Hour)
	idle := poddtest.NewPod("idle.yaml", 1, "idle", "app")
	v.Revision++
	v.Pods = poddtest.NewView(append([]*server.PodView{started, idle}, v.Pods...)...).Pods
	f.Publish(&v)
	usage, requests := f.OnUsage, 0
	f.OnUsage = func(ctx context.Context) (*server.Usage, error) {
		u, err := usage(ctx)
		if requests++; requests > 2 {
			u.Pods[server.Key{Namespace: "default", Name: "new-n1"}] = server.PodUsage{Containers: map[string]server.ResourceUsage{"app": {NanoCores: new(uint64(9e6)), WorkingSetBytes: 1 << 20}}}
		}
		return u, err
	}
	var got poddtest.Result
	// On a busy machine, podd top may stop waiting (sampleTimeout) before its third request.
	for attempt := 0; attempt < 20 && requests < 3; attempt++ {
		requests = 0
		got = podd(t, f, "top", "pod", "new", "--no-headers")
	}
	if got != (poddtest.Result{Out: "new-n1   9m    1Mi\n"}) || requests != 3 {
		t.Errorf("pod new: got %+v after %d requests, want its usage after 3", got, requests)
	}
	if got := podd(t, f, "top", "pod", "idle"); got.Code != 1 || got.Err != "podd: showing the resource usage of default/idle: none of its containers is running; run \"podd why idle\" for the reason\n" {
		t.Errorf("pod idle: got %+v, want an error, because none of its containers is running", got)
	}
	f.OnUsage = usage
	if got := podd(t, f, "top", "pod"); got.Code != 0 || strings.Contains(got.Out, "new-n1") {
		t.Errorf("all pods, without usage of new-n1: got %+v, want exit code 0 and no row of new-n1", got)
	}
	if got := podd(t, f, "top", "pod", "new"); got.Code != 1 || !strings.Contains(got.Err, `"new-n1" not found`) {
		t.Errorf("pod new, without its usage: got %+v, want an error for new-n1", got)
	}
}
