//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/runtimetest"
	"podd/runtime/runtimetest/stack"
	"podd/server"
)

// cost is the resource usage of podd per pod. The durations are processor time. start is used
// from the first start of podd until the pod is ready, and restart from a restart of podd until the pod
// is ready. idle is used in 30 idle seconds, and remove until the pod is removed. The field memory is resident memory in KiB.
type cost struct {
	start, restart, idle, remove time.Duration
	memory                       float64
}

// TestFaultScale runs 200, 1,000 and 5,000 pods on the in-memory runtime. With 5,000 pods, each cost
// per pod may be at most a tenth higher than with 1,000 pods. The test repeats the measurements up to
// four times and uses the lowest values, because other processes on the host can increase a cost by
// more than a tenth.
func TestFaultScale(t *testing.T) {
	measure := func(n int) cost {
		c := measureCost(t, n)
		t.Logf("cost of each of %d pods: %v", n, c)
		return c
	}
	measure(200)
	few, many := measure(1000), measure(5000)
	for range 4 {
		if len(many.describeGrowth(few)) == 0 {
			break
		}
		few, many = few.lower(measure(1000)), many.lower(measure(5000))
	}
	for _, what := range many.describeGrowth(few) {
		t.Error(what)
	}
}

func (c cost) String() string {
	return fmt.Sprintf("%v at the start, %v at a restart of podd, %v while idle, %v at the removal, %.0f kB", c.start, c.restart, c.idle, c.remove, c.memory)
}

// lower returns the lower of the two values for each cost.
func (c cost) lower(b cost) cost {
	return cost{min(c.start, b.start), min(c.restart, b.restart), min(c.idle, b.idle), min(c.remove, b.remove), min(c.memory, b.memory)}
}

// describeGrowth returns a description of each cost that is more than a tenth higher than with few
// pods.
func (c cost) describeGrowth(few cost) (all []string) {
	for _, each := range []struct {
		what      string
		few, many float64
	}{
		{"the start", few.start.Seconds(), c.start.Seconds()},
		{"a restart of podd", few.restart.Seconds(), c.restart.Seconds()},
		{"an idle half minute", few.idle.Seconds(), c.idle.Seconds()},
		{"the removal", few.remove.Seconds(), c.remove.Seconds()},
		{"the memory", few.memory, c.memory},
	} {
		if each.many > 1.1*each.few {
			all = append(all, fmt.Sprintf("cost of %s per pod: with 5,000 pods, got %.0f %% more than with 1,000, want at most 10 %% more", each.what, 100*(each.many/each.few-1)))
		}
	}
	return all
}

// padding makes the list of 5,000 sandboxes larger than 16 MiB, which is the kubelet's limit for a
// gRPC message. podd must have no such limit.
var padding = strings.Repeat("x", 4<<10)

// wantLargeList fails the test unless the list of all sandboxes is larger than 16 MiB.
func wantLargeList(t *testing.T, endpoint string) {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	list, err := cri.NewRuntimeServiceClient(conn).ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if size := proto.Size(list); size <= 16<<20 {
		t.Errorf("list of %d sandboxes: got %d bytes, want more than 16 MiB", len(list.GetItems()), size)
	}
}

// untilQuiet waits until podd has used less than a twentieth of a core for five seconds. podd delays
// some work, such as an admission of all pods, until after a burst.
func (d *daemon) untilQuiet() {
	d.t.Helper()
	const period = 5 * time.Second
	d.within(10*patience, "podd uses less than a twentieth of a core", func() error {
		before := processorTime(d.t, d.proc.pid())
		<-time.After(period)
		if used := processorTime(d.t, d.proc.pid()) - before; used > period/20 {
			return fmt.Errorf("processor time of podd in %v: got %v, want at most %v", period, used, period/20)
		}
		return nil
	})
}

// measureCost runs n pods and returns the cost of each.
func measureCost(t *testing.T, n int) (c cost) {
	t.Helper()
	runtime := runtimetest.New(t, runtimetest.Options{})
	runtime.AddImages(stack.BusyboxImage)
	d := newDaemon(t, shared, "--max-pods", strconv.Itoa(n))
	d.endpoint = "unix://" + runtime.Serve(t)
	d.start()
	d.untilQuiet()
	base := d.measure().memory
	d.kill()
	for i := range n {
		p := d.pod(fmt.Sprint("p", i), v1.Container{Name: "main", Image: stack.BusyboxImage, Command: []string{"serve"}})
		p.Spec.Volumes = nil
		p.Annotations = map[string]string{"padding": padding}
		d.apply(p)
	}
	used := func(from time.Duration) time.Duration {
		return (processorTime(t, d.proc.pid()) - from) / time.Duration(n)
	}
	d.start()
	d.within(10*patience, "all containers run", func() error {
		<-time.After(time.Second)
		if have := len(runtime.Containers()); have < n {
			return fmt.Errorf("got %d running containers, want %d", have, n)
		}
		return nil
	})
	d.untilReady(n)
	d.untilQuiet()
	c.start = used(0)
	d.crash()
	d.untilReady(n)
	d.untilQuiet()
	c.restart = used(0)
	if n == 5000 {
		wantLargeList(t, d.endpoint)
	}
	before := processorTime(t, d.proc.pid())
	<-time.After(30 * time.Second)
	c.idle, c.memory = used(before), float64(d.measure().memory-base)/float64(n)
	before = processorTime(t, d.proc.pid())
	for i := range n {
		d.remove(fmt.Sprint("p", i))
	}
	d.within(10*patience, "all pods are removed", func() error {
		<-time.After(time.Second)
		if left := len(runtime.Sandboxes()); left > 0 {
			return fmt.Errorf("got %d sandboxes, want none", left)
		}
		return nil
	})
	c.remove = used(before)
	// Removing the directories of 5,000 pods takes minutes on a slow disk.
	if err := d.untilNothing(t.Context(), 10*patience); err != nil {
		t.Error(err)
	}
	return c
}

// untilReady waits until podd shows n ready pods. It polls slowly because the response is
// expensive for podd.
func (d *daemon) untilReady(n int) {
	d.t.Helper()
	d.within(10*patience, "podd shows all pods as ready", func() error {
		<-time.After(5 * time.Second)
		v, err := d.state()
		if err != nil {
			return err
		}
		if v.Starting {
			return errors.New("podd has not listed the pods yet")
		}
		return allReady(v, n)
	})
}

func allReady(v *server.View, n int) error {
	ready := 0
	for _, p := range v.Pods {
		if p.Ready && p.IsCurrent {
			ready++
		}
	}
	if ready != n {
		return fmt.Errorf("got %d ready pods, want %d", ready, n)
	}
	return nil
}
