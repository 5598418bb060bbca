package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cli/client"
	"podd/cmd/podd/internal/cli/printer"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

func TestGetGoldens(t *testing.T) {
	for name, words := range map[string]string{
		"get_pods":         "po",
		"get_pods_all":     "pods -A",
		"get_pods_wide":    "pod -o wide -n kube-system",
		"get_pods_named":   "pod web-n1 kube-system/dns",
		"get_pods_label":   "pods -l app=web --no-headers",
		"get_none":         "pods -n nowhere",
		"get_name":         "pods,secrets -A -o name",
		"get_several":      "pods,nodes,secrets",
		"get_typed":        "pod/web node/n1",
		"get_one_yaml":     "ns default -o yaml",
		"get_secret_yaml":  "secrets -o yaml", // managed fields are omitted
		"get_list_json":    "namespaces -o json",
		"get_no_resource":  "deployments",
		"get_no_pod":       "pod wbe",
		"get_no_secret":    "secret none",
		"get_bad_selector": "pods -l a=(",
	} {
		f := poddtest.ServeShop(t) // revisions depend on earlier requests
		got := podd(t, f, append([]string{"get"}, strings.Fields(words)...)...)
		golden(t, name, fmt.Sprintf("%s-- stderr, code %d --\n%s", got.Out, got.Code, got.Err))
	}
}

// outputFunc is a function as an io.Writer.
type outputFunc func([]byte) (int, error)

func (f outputFunc) Write(b []byte) (int, error) { return f(b) }

// TestGetWatch checks that changed rows are aligned with earlier ones.
func TestGetWatch(t *testing.T) {
	f := poddtest.ServeShop(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	lines := 0
	s := iostreams.Streams{Err: io.Discard, Out: outputFunc(func(b []byte) (int, error) {
		out.Write(b)
		lines += strings.Count(string(b), "\n")
		switch lines {
		case 3: // the header and two pods
			v := *f.View()
			v.Revision++
			v.Pods = append([]*server.PodView{}, v.Pods...)
			v.Pods[1] = poddtest.Crashed(poddtest.PodAt("web.yaml", 1, "web", "app"))
			f.Publish(&v)
		case 4:
			cancel()
		}
		return len(b), nil
	})}
	if code := executeVerb(ctx, s, "get", "--run-dir", f.Dir, "pods", "-w"); code != exit.Interrupted {
		t.Errorf("got code %d", code)
	}
	golden(t, "get_watch", out.String())
}

// TestPaint checks that colors do not change the width of columns.
func TestPaint(t *testing.T) {
	l := listing{PsCmd: &PsCmd{}, now: func() time.Time { return poddtest.At }}
	l.table.Paint = paintStatus
	painted := l.rows(poddtest.ViewOf(poddtest.Started(poddtest.PodAt("web.yaml", 1, "web", "app")), poddtest.Crashed(poddtest.PodAt("db.yaml", 1, "db", "pg"))))
	l.table.Paint = nil
	bare := l.rows(poddtest.ViewOf(poddtest.Started(poddtest.PodAt("web.yaml", 1, "web", "app")), poddtest.Crashed(poddtest.PodAt("db.yaml", 1, "db", "pg"))))
	colours := regexp.MustCompile(`\x1b\[\d+m`)
	if got := colours.ReplaceAllString(painted, ""); got != bare || !strings.Contains(painted, "\x1b[31mCrashLoopBackOff\x1b[0m  ") || !strings.Contains(painted, "\x1b[32mRunning\x1b[0m") {
		t.Errorf("painted:\n%q\nbare:\n%s", painted, bare)
	}
}

// TestPaintTypes checks that get and events color only the TYPE of warnings.
func TestPaintTypes(t *testing.T) {
	o := &objects{GetCmd: &GetCmd{}, columns: []metav1.TableColumnDefinition{{Name: "Type"}, {Name: "Status"}}}
	paint := o.paint(client.Resource{})
	for cell, want := range map[string]string{"TYPE": "TYPE", "Opaque": "Opaque", "Warning": "\x1b[33mWarning\x1b[0m"} {
		if got := paint(0, cell); got != want {
			t.Errorf("%s: %q, want %q", cell, got, want)
		}
	}
	if got := paint(1, "Running"); got != printer.Status("Running") {
		t.Errorf("a status: %q", got)
	}
}
