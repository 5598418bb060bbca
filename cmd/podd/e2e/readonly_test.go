//go:build e2e

package e2e

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestReadOnlyPortShowsNothingPrivate puts markers into every private field that a pod of a file
// can have, and into its log and its termination message. No marker may appear on the ports
// without authentication, in podd's log or in its events. For root, all of them must appear.
func TestReadOnlyPortShowsNothingPrivate(t *testing.T) {
	t.Parallel()
	readOnly, cadvisor := freePort(t), freePort(t)
	events := filepath.Join(t.TempDir(), "events")
	d := newDaemon(t, shared, "--read-only-port", strconv.Itoa(readOnly), "--cadvisor-port", strconv.Itoa(cadvisor), "--event-log", events)
	d.start()
	var markers []string
	mark := func() string {
		markers = append(markers, "private-marker-"+strconv.Itoa(100+len(markers)))
		return markers[len(markers)-1]
	}
	get := func() *v1.HTTPGetAction {
		return &v1.HTTPGetAction{Path: "/?token=" + mark(), Port: intstr.FromInt32(9), Scheme: v1.URISchemeHTTP, HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: mark()}}}
	}
	last := mark()
	// The container prints the marker, so that its log and its termination message contain it. The
	// command does not contain the complete marker.
	c := shell("main", `printf 'private-%s\n' `+strings.TrimPrefix(last, "private-")+`; sleep 1; exit 3`)
	c.TerminationMessagePolicy = v1.TerminationMessageFallbackToLogsOnError
	c.Env = []v1.EnvVar{{Name: "PASSWORD", Value: mark()}}
	c.ReadinessProbe = probeEverySecond(v1.ProbeHandler{HTTPGet: get()})
	c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{HTTPGet: get()}}
	bad := shell("bad", "true")
	bad.Command = []string{"/no/such/program"}
	bad.Env = []v1.EnvVar{{Name: "PASSWORD", Value: mark()}}
	p := d.pod("web", c, bad)
	p.Annotations = map[string]string{"example.com/token": mark()}
	d.apply(p)
	d.untilPod("has a termination message with the marker", "web", hasTerminationMessage(func(s string) bool { return strings.Contains(s, last) }))
	d.untilEvent("web", 1, "Failed", "/no/such/program")

	for name, port := range map[string]int{"read-only": readOnly, "cAdvisor": cadvisor} {
		client := d.client("http://127.0.0.1:"+strconv.Itoa(port), nil)
		paths := []string{"/metrics", "/"}
		if port == cadvisor {
			paths = append(paths, "/api/v2.1/attributes", "/api/v2.1/spec/?recursive=true", "/api/v2.1/ps/", "/api/v2.1/events/?all_events=true&subcontainers=true&max_events=0")
		}
		if port == readOnly {
			paths = append(paths, "/pods", "/stats/summary", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes", "/healthz")
		}
		for _, path := range paths {
			text := getPage(t, client, path)
			wantNoMarkers(t, name+path, text, markers)
			if path == "/pods" && (!strings.Contains(text, "PASSWORD") || !strings.Contains(text, "/no/such/program") || !strings.Contains(text, `"exitCode":3`)) {
				t.Errorf("%s/pods: got %s, want the name of the variable, the command and the exit code in it", name, text)
			}
		}
		wantNoMarkers(t, name+"/page/state", firstLine(t, client, "/page/state"), markers)
	}
	for what, file := range map[string]string{"the log": d.logFile(), "the event log": events} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		wantNoMarkers(t, what, string(text), markers)
	}
	view, err := d.state()
	if err != nil {
		t.Fatal(err)
	}
	whole := d.find(view, "web").Pod.String()
	if i := slices.IndexFunc(markers, func(m string) bool { return !strings.Contains(whole, m) }); i >= 0 {
		t.Errorf("state on podd's socket: got no %s, want all markers", markers[i])
	}
}

// wantNoMarkers fails the test if text is empty or contains one of the markers.
func wantNoMarkers(t *testing.T, what, text string, markers []string) {
	t.Helper()
	if text == "" {
		t.Errorf("%s: got an empty text, want one in which markers could be", what)
	}
	for _, m := range markers {
		if at := strings.Index(text, m); at >= 0 {
			t.Errorf("%s: got the marker %s, want no marker: %q", what, m, text[max(0, at-100):min(len(text), at+100)])
		}
	}
}

// firstLine returns the first line of a streamed response.
func firstLine(t *testing.T, c *client, path string) string {
	t.Helper()
	resp := c.send(t.Context(), http.MethodGet, path, "")
	defer resp.Body.Close()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil {
		t.Fatalf("reading the first line of GET %s: %v", path, err)
	}
	return line
}
