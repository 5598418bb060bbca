//go:build e2e

package cluster

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestNodeContract checks the behavior that monitoring systems and network plugins require of a node.
// The kubelet API must accept the UID of a mirror pod in its paths. podd must record events about
// cordons, and must count its requests to the API server in a metric. It must send the pod CIDR to the
// runtime.
func TestNodeContract(t *testing.T) {
	t.Parallel()
	a, _ := newServingAgent(t, "n22")
	a.start().untilReady()
	a.write("web", webPod("web", "1000000"))
	m := a.untilMirror("web", "ready", isReady)
	run := "/api/v1/nodes/n22/proxy/run/default/" + m.Name + "/%s/main?cmd=true"
	if string(m.UID) == m.Annotations[configHash] {
		t.Fatalf("UID of the mirror pod: got %s, which is the UID of the static pod; want another one", m.UID)
	}
	for _, uid := range []string{string(m.UID), m.Annotations[configHash]} {
		if err := plane.do(http.MethodPost, fmt.Sprintf(run, uid), nil, nil); err != nil {
			t.Errorf("running a command in the pod with the UID %s: got error %v, want none", uid, err)
		}
	}
	if err := plane.do(http.MethodPost, fmt.Sprintf(run, "another"), nil, nil); err == nil {
		t.Error("running a command with the UID of no pod: got no error, want one")
	}

	spec := map[string]any{"podCIDR": "10.213.7.0/24", "podCIDRs": []string{"10.213.7.0/24"}}
	if err := plane.do(http.MethodPatch, "/api/v1/nodes/n22", map[string]any{"spec": spec}, nil); err != nil {
		t.Fatal(err)
	}
	a.eventually("podd sends the pod CIDR to the runtime", func() error {
		log, err := os.ReadFile(a.logFile())
		if err == nil && !bytes.Contains(log, []byte("pod CIDR sent to the runtime podCIDR=10.213.7.0/24")) {
			err = fmt.Errorf("got log %s, want the message about the pod CIDR in it", log)
		}
		return err
	})
	for _, step := range []struct {
		unschedulable bool
		reason        string
	}{{true, "NodeNotSchedulable"}, {false, "NodeSchedulable"}} {
		if err := plane.do(http.MethodPatch, "/api/v1/nodes/n22", map[string]any{"spec": map[string]any{"unschedulable": step.unschedulable}}, nil); err != nil {
			t.Fatal(err)
		}
		query := "/api/v1/events?fieldSelector=" + url.QueryEscape("involvedObject.kind=Node,involvedObject.name=n22,reason="+step.reason)
		a.eventually("the Node has the event "+step.reason, func() error {
			var l v1.EventList
			if err := plane.do(http.MethodGet, query, nil, &l); err != nil {
				return err
			}
			if len(l.Items) != 1 || !strings.Contains(l.Items[0].Message, step.reason) {
				return fmt.Errorf("got events %+v, want one with its reason in the message", l.Items)
			}
			return nil
		})
	}
	if text, err := plane.getText("/api/v1/nodes/n22/proxy/metrics"); err != nil || !strings.Contains(text, `rest_client_requests_total{code="201",host="`) {
		t.Errorf("metrics: got error %v and %s, want rest_client_requests_total with code 201", err, text)
	}
}
