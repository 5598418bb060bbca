//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/tracing/tracingtest"
)

// TestTracing checks that podd sends spans about the start and removal of a pod, and about a request to
// the kubelet API. The spans must not contain values of environment variables or arguments of commands.
func TestTracing(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	collector := tracingtest.Serve(t, ln)
	d := newDaemon(t, shared)
	config := filepath.Join(d.dir, "config.yaml")
	text := "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, tracing: {endpoint: \"" + ln.Addr().String() + "\", samplingRatePerMillion: 1000000}}"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.args = append(d.args, "--config", config)
	d.api = freePort(t)
	d.start()
	const secret = "hunter2-9e5d"
	broken := shell("broken", "echo never")
	broken.Env = []v1.EnvVar{{Name: "PASSWORD", Value: secret}}
	broken.Command = []string{"$(PASSWORD)"} // so that the error of the runtime contains the value
	p := d.pod("web", shell("main", serve("main")), broken)
	d.apply(p)
	d.eventually("the collector has the spans of the start of the pod", func() error {
		for _, path := range []string{
			"syncPod/RunSandbox/runtime.v1.RuntimeService/RunPodSandbox",
			"syncPod/StartContainer/runtime.v1.RuntimeService/CreateContainer",
			"syncPod/StartContainer/runtime.v1.RuntimeService/StartContainer",
		} {
			if err := wantPath(collector, path, d.podName("web")); err != nil {
				return err
			}
		}
		return nil
	})
	c := d.admin()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.server+"/run/default/"+d.podName("web")+"/main?cmd=echo&cmd="+secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	const trace = "0102030405060708090a0b0c0d0e0f10"
	r.Header.Set("traceparent", "00-"+trace+"-0102030405060708-01")
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	d.remove("web")
	d.untilGone("web")
	d.eventually("the collector has the spans of the request and of the removal of the pod", func() error {
		if err := wantPath(collector, "POST /run/{namespace}/{pod}/{container}/runtime.v1.RuntimeService/ExecSync", ""); err != nil {
			return err
		}
		return wantPath(collector, "syncTerminatedPod/RemoveSandbox/runtime.v1.RuntimeService/RemovePodSandbox", d.podName("web"))
	})
	failed := 0
	for _, s := range collector.Spans() {
		if strings.Contains(s.String(), secret) {
			t.Errorf("span %s: got %s, want no secret in it", s.Name, s)
		}
		if s.Name == "StartContainer" && s.Status.Message != "" {
			failed++
		}
		if strings.HasPrefix(s.Name, "POST /run/") && (s.Trace != trace || s.Attrs["http.route"] != "/run/{namespace}/{pod}/{container}") {
			t.Errorf("span of the request: got trace %s and attributes %v, want the trace %s of the request and its route", s.Trace, s.Attrs, trace)
		}
		if s.Resource["service.name"] != "podd" || s.Resource["host.name"] != d.host {
			t.Errorf("span %s: got resource %v, want service.name podd and host.name %s", s.Name, s.Resource, d.host)
		}
	}
	if failed == 0 {
		t.Error("spans StartContainer: got none with an error, want one of the container that cannot start")
	}
}

// wantPath returns an error unless the collector has received nested spans with these names, of which
// the outermost has the attribute k8s.pod.name. If pod is "", that attribute is not checked.
func wantPath(collector *tracingtest.Collector, path, pod string) error {
	all := collector.Spans()
	byID := map[string]tracingtest.Span{}
	for _, s := range all {
		byID[s.Trace+s.ID] = s
	}
	var found []string
	for _, s := range all {
		names := s.Name
		outer := s
		for parent, ok := byID[s.Trace+s.Parent]; ok; parent, ok = byID[parent.Trace+parent.Parent] {
			names, outer = parent.Name+"/"+names, parent
		}
		if names == path && (pod == "" || outer.Attrs["k8s.pod.name"] == pod) {
			return nil
		}
		found = append(found, names)
	}
	return fmt.Errorf("got the spans %q, want %s among them", found, path)
}
