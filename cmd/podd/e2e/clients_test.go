//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// known are the programs that ask a kubelet, with the rule of the role that each
// is installed with, and what they ask for with the headers that decide: as
// metrics-server 0.9, Prometheus 2.42, OpenTelemetry's kubeletstats receiver 0.149
// and Fluent Bit's kubernetes filter do.
var known = []struct {
	program, rules string
	asks           []question
}{
	{"metrics-server", "[{apiGroups: [''], resources: [nodes/metrics], verbs: [get]}]", []question{
		{"/metrics/resource", nil, "text/plain", resourceMetrics},
	}},
	{"prometheus", "[{apiGroups: [''], resources: [nodes/metrics], verbs: [get]}]", []question{
		{"/metrics", scraping, "text/plain; version=0.0.4", has("kubelet_running_pods 1\n")},
		{"/metrics/cadvisor", scraping, "text/plain; version=0.0.4", has(`container_memory_working_set_bytes{container="main"`)},
		{"/metrics/resource", scraping, "text/plain; version=0.0.4", resourceMetrics},
		{"/metrics/probes", scraping, "text/plain; version=0.0.4", has(`prober_probe_total{container="main"`)},
	}},
	{"kubeletstats", "[{apiGroups: [''], resources: [nodes/stats, nodes/proxy], verbs: [get]}]", []question{
		{"/stats/summary", nil, "application/json", summaryOfAll},
		{"/pods", nil, "application/json", podsOfAll},
	}},
	{"fluent-bit", "[{apiGroups: [''], resources: [namespaces, pods, nodes, nodes/proxy], verbs: [get, list, watch]}]", []question{
		{"/pods", closing, "application/json", podsOfAll},
		{"/api/v1/namespaces/default", closing, "application/json", has(`"kind":"Namespace"`)},
		{"/api/v1/namespaces/default/pods/WEB", closing, "application/json", has(`"kind":"Pod"`)},
	}},
}

type question struct {
	path        string // WEB stands for the pod's name
	header      http.Header
	contentType string // begins so
	has         func(pod, body string) error
}

var (
	scraping = http.Header{
		"Accept":                              {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"},
		"X-Prometheus-Scrape-Timeout-Seconds": {"10"},
	}
	closing = http.Header{"User-Agent": {"Fluent-Bit"}, "Connection": {"close"}}
)

// TestKnownClients: the programs that people run beside a kubelet get what they read
// of it, with the roles that they come with, and may do nothing else.
func TestKnownClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens, policy := filepath.Join(dir, "tokens"), filepath.Join(dir, "policy.yaml")
	var users, roles strings.Builder
	for _, k := range known {
		fmt.Fprintf(&users, "the-token-of-%s,%s,uid\n", k.program, k.program)
		fmt.Fprintf(&roles, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s}\nrules: %s\n", k.program, k.rules)
		fmt.Fprintf(&roles, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: %s}\n"+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]\n", k.program, k.program, k.program)
	}
	if err := errors.Join(os.WriteFile(tokens, []byte(users.String()), 0o600), os.WriteFile(policy, []byte(roles.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, shared, "--token-auth-file", tokens, "--authorization-policy-file", policy, "--address", "127.0.0.1")
	d.api = freePort(t)
	d.start()
	main := shell("main", serve("main"))
	main.ReadinessProbe = every(executes("true"))
	d.apply(d.pod("web", main))
	d.untilApplied("web")
	c := d.admin()
	c.tls.GetClientCertificate = nil // whom each token names
	for _, k := range known {
		token := "the-token-of-" + k.program
		for _, a := range k.asks {
			path := strings.ReplaceAll(a.path, "WEB", d.full("web"))
			d.eventually(k.program+" reads "+path, func() error {
				contentType, body, err := c.as(token, path, a.header)
				if err == nil && !strings.HasPrefix(contentType, a.contentType) {
					err = fmt.Errorf("it is %s", contentType)
				}
				if err == nil {
					err = a.has(d.full("web"), body)
				}
				return err
			})
		}
		if status, text := c.ask(http.MethodPost, "/run/default/"+d.full("web")+"/main?cmd=id", token); status != http.StatusForbidden {
			t.Errorf("%s runs a command: %d %s", k.program, status, text)
		}
	}
}

// as asks with a token and headers.
func (c *client) as(token, path string, header http.Header) (contentType, body string, err error) {
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.server+path, nil)
	if err != nil {
		return "", "", err
	}
	if header != nil {
		r.Header = header.Clone()
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := c.Do(r)
	if err != nil {
		return "", "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return answer.Header.Get("Content-Type"), string(text), err
}

func has(want string) func(string, string) error {
	return func(_, body string) error {
		if !strings.Contains(body, want) {
			return fmt.Errorf("no %s in\n%s", want, body)
		}
		return nil
	}
}

// resourceMetrics: without all of these metrics-server leaves out the node or the pod.
func resourceMetrics(pod, body string) error {
	var all []error
	for _, name := range []string{"node_cpu_usage_seconds_total", "node_memory_working_set_bytes"} {
		_, err := row(body, name)
		all = append(all, err)
	}
	for _, name := range []string{"container_cpu_usage_seconds_total", "container_memory_working_set_bytes", "container_start_time_seconds"} {
		v, err := row(body, name, `container="main"`, `namespace="default"`, `pod="`+pod+`"`)
		if err == nil && v <= 0 {
			err = fmt.Errorf("%s is %v", name, v)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// summaryOfAll: the receiver makes a resource of each, and metrics of what is there.
func summaryOfAll(pod, body string) error {
	var s api.Summary
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		return err
	}
	if n := s.Node; n.NodeName == "" || n.StartTime.IsZero() || n.CPU == nil || n.Memory == nil || n.Fs == nil || n.Network == nil {
		return fmt.Errorf("the node has not all: %+v", n)
	}
	for _, p := range s.Pods {
		if p.PodRef.Name != pod {
			continue
		}
		if p.PodRef.UID == "" || p.StartTime.IsZero() || p.CPU == nil || p.Memory == nil || p.Network == nil || p.EphemeralStorage == nil || len(p.Containers) != 1 {
			return fmt.Errorf("the pod has not all: %+v", p)
		}
		if c := p.Containers[0]; c.StartTime.IsZero() || c.CPU == nil || c.CPU.UsageNanoCores == nil || c.Memory == nil || c.Memory.RSSBytes == nil || c.Rootfs == nil {
			return fmt.Errorf("the container has not all: %+v", c)
		}
		return nil
	}
	return fmt.Errorf("no pod %s in %s", pod, body)
}

// hashed is the ID that log agents take from the name of a log, and compare.
var hashed = regexp.MustCompile("^[a-z-]+://[a-z0-9]{64}$")

// podsOfAll: by names and IDs, log lines and usage get the labels of their pod.
func podsOfAll(pod, body string) error {
	var list struct {
		metav1.TypeMeta
		Items []v1.Pod
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return err
	}
	for _, p := range list.Items {
		if p.Name != pod {
			continue
		}
		s := p.Status
		if p.Namespace == "" || p.UID == "" || p.Spec.NodeName == "" || s.PodIP == "" || len(s.ContainerStatuses) != 1 || !hashed.MatchString(s.ContainerStatuses[0].ContainerID) {
			return fmt.Errorf("the pod has not all: %+v", p)
		}
		return nil
	}
	return fmt.Errorf("no pod %s in %s", pod, body)
}
