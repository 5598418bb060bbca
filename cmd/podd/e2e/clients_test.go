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

// knownClients are programs that send requests to a kubelet. Each entry contains the rules of the
// ClusterRole with which the program is installed, and the requests of the program with the relevant
// headers. The entries match metrics-server 0.9, Prometheus 2.42, OpenTelemetry's kubeletstats receiver
// 0.149 and Fluent Bit's kubernetes filter.
var knownClients = []struct {
	program, rules string
	requests       []clientRequest
}{
	{"metrics-server", "[{apiGroups: [''], resources: [nodes/metrics], verbs: [get]}]", []clientRequest{
		{"/metrics/resource", nil, "text/plain", checkResourceMetrics},
	}},
	{"prometheus", "[{apiGroups: [''], resources: [nodes/metrics], verbs: [get]}]", []clientRequest{
		{"/metrics", scraping, "text/plain; version=0.0.4", bodyContains("kubelet_running_pods 1\n")},
		{"/metrics/cadvisor", scraping, "text/plain; version=0.0.4", bodyContains(`container_memory_working_set_bytes{container="main"`)},
		{"/metrics/resource", scraping, "text/plain; version=0.0.4", checkResourceMetrics},
		{"/metrics/probes", scraping, "text/plain; version=0.0.4", bodyContains(`prober_probe_total{container="main"`)},
	}},
	{"kubeletstats", "[{apiGroups: [''], resources: [nodes/stats, nodes/proxy], verbs: [get]}]", []clientRequest{
		{"/stats/summary", nil, "application/json", checkSummary},
		{"/pods", nil, "application/json", checkPodIDs},
	}},
	{"fluent-bit", "[{apiGroups: [''], resources: [namespaces, pods, nodes, nodes/proxy], verbs: [get, list, watch]}]", []clientRequest{
		{"/pods", closing, "application/json", checkPodIDs},
		{"/api/v1/namespaces/default", closing, "application/json", bodyContains(`"kind":"Namespace"`)},
		{"/api/v1/namespaces/default/pods/WEB", closing, "application/json", bodyContains(`"kind":"Pod"`)},
	}},
}

type clientRequest struct {
	path        string // WEB is replaced by the pod's name
	header      http.Header
	contentType string // prefix of the content type of the response
	check       func(pod, body string) error
}

var (
	scraping = http.Header{
		"Accept":                              {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"},
		"X-Prometheus-Scrape-Timeout-Seconds": {"10"},
	}
	closing = http.Header{"User-Agent": {"Fluent-Bit"}, "Connection": {"close"}}
)

// TestKnownClients checks that programs that read from a kubelet get the data that they need from
// podd. Each program has its own role, which must not allow anything else.
func TestKnownClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens, policy := filepath.Join(dir, "tokens"), filepath.Join(dir, "policy.yaml")
	var users, roles strings.Builder
	for _, k := range knownClients {
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
	main.ReadinessProbe = probeEverySecond(execHandler("true"))
	d.apply(d.pod("web", main))
	d.untilApplied("web")
	c := d.admin()
	c.tls.GetClientCertificate = nil // no client certificate, because the token authenticates the user
	for _, k := range knownClients {
		token := "the-token-of-" + k.program
		for _, q := range k.requests {
			path := strings.ReplaceAll(q.path, "WEB", d.podName("web"))
			d.eventually(k.program+" reads "+path, func() error {
				contentType, body, err := c.getAs(token, path, q.header)
				if err == nil && !strings.HasPrefix(contentType, q.contentType) {
					err = fmt.Errorf("got the content type %s, want %s", contentType, q.contentType)
				}
				if err == nil {
					err = q.check(d.podName("web"), body)
				}
				return err
			})
		}
		if status, text := c.request(http.MethodPost, "/run/default/"+d.podName("web")+"/main?cmd=id", token); status != http.StatusForbidden {
			t.Errorf("%s: running a command: got status %d, body %s; want status 403", k.program, status, text)
		}
	}
}

// getAs sends a GET request with a token and headers.
func (c *client) getAs(token, path string, header http.Header) (contentType, body string, err error) {
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.server+path, nil)
	if err != nil {
		return "", "", err
	}
	if header != nil {
		r.Header = header.Clone()
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.Do(r)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("got status %s, want 200: %s", resp.Status, text)
	}
	return resp.Header.Get("Content-Type"), string(text), err
}

// bodyContains returns a check that the body of a response contains the text want.
func bodyContains(want string) func(string, string) error {
	return func(_, body string) error {
		if !strings.Contains(body, want) {
			return fmt.Errorf("got body\n%s\nwant %q in it", body, want)
		}
		return nil
	}
}

// checkResourceMetrics returns an error unless body contains all metrics without which
// metrics-server ignores the node or the pod.
func checkResourceMetrics(pod, body string) error {
	var all []error
	for _, name := range []string{"node_cpu_usage_seconds_total", "node_memory_working_set_bytes"} {
		_, err := metricValue(body, name)
		all = append(all, err)
	}
	for _, name := range []string{"container_cpu_usage_seconds_total", "container_memory_working_set_bytes", "container_start_time_seconds"} {
		v, err := metricValue(body, name, `container="main"`, `namespace="default"`, `pod="`+pod+`"`)
		if err == nil && v <= 0 {
			err = fmt.Errorf("%s: got %v, want more than 0", name, v)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// checkSummary returns an error unless body contains all fields that the kubeletstats receiver
// needs for a resource and its metrics.
func checkSummary(pod, body string) error {
	var s api.Summary
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		return err
	}
	if n := s.Node; n.NodeName == "" || n.StartTime.IsZero() || n.CPU == nil || n.Memory == nil || n.Fs == nil || n.Network == nil {
		return fmt.Errorf("got the node %+v, want its name, start time, CPU, memory, file system and network", n)
	}
	for _, p := range s.Pods {
		if p.PodRef.Name != pod {
			continue
		}
		if p.PodRef.UID == "" || p.StartTime.IsZero() || p.CPU == nil || p.Memory == nil || p.Network == nil || p.EphemeralStorage == nil || len(p.Containers) != 1 {
			return fmt.Errorf("got the pod %+v, want its UID, start time, CPU, memory, network, ephemeral storage and one container", p)
		}
		if c := p.Containers[0]; c.StartTime.IsZero() || c.CPU == nil || c.CPU.UsageNanoCores == nil || c.Memory == nil || c.Memory.RSSBytes == nil || c.Rootfs == nil {
			return fmt.Errorf("got the container %+v, want its start time, CPU, memory and root file system", c)
		}
		return nil
	}
	return fmt.Errorf("got no pod %s, want it in %s", pod, body)
}

// hashed matches a container ID such as "containerd://6c3f…". Log agents read the part after "://" from
// the name of a log file.
var hashed = regexp.MustCompile("^[a-z-]+://[a-z0-9]{64}$")

// checkPodIDs returns an error unless body contains all names and IDs with which clients add the
// labels of a pod to log lines and usage.
func checkPodIDs(pod, body string) error {
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
			return fmt.Errorf("got the pod %+v, want its namespace, UID, node, IP and the hexadecimal ID of one container", p)
		}
		return nil
	}
	return fmt.Errorf("got no pod %s, want it in %s", pod, body)
}
