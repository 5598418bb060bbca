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

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

func TestGet_Goldens(t *testing.T) {
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
		"get_secret_yaml":  "secrets -o yaml", // podd get omits managedFields
		"get_list_json":    "namespaces -o json",
		"get_no_resource":  "deployments",
		"get_no_pod":       "pod wbe",
		"get_no_secret":    "secret none",
		"get_bad_selector": "pods -l a=(",
	} {
		f := poddtest.ServeShop(t) // a new podd for each case, because earlier requests change the revisions
		got := podd(t, f, append([]string{"get"}, strings.Fields(words)...)...)
		compareGolden(t, name, fmt.Sprintf("%s-- stderr, code %d --\n%s", got.Out, got.Code, got.Err))
	}
}

// A writerFunc is a function that implements io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestGet_Watch checks that podd get -w aligns the row of a changed pod with the earlier rows.
func TestGet_Watch(t *testing.T) {
	f := poddtest.ServeShop(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	lines := 0
	s := iostreams.Streams{Err: io.Discard, Out: writerFunc(func(b []byte) (int, error) {
		out.Write(b)
		lines += strings.Count(string(b), "\n")
		switch lines {
		case 3: // the header and two pods
			v := *f.View()
			v.Revision++
			v.Pods = append([]*server.PodView{}, v.Pods...)
			v.Pods[1] = poddtest.SetCrashed(poddtest.NewPod("web.yaml", 1, "web", "app"))
			f.Publish(&v)
		case 4:
			cancel()
		}
		return len(b), nil
	})}
	if code := executeVerb(ctx, s, "get", "--run-dir", f.Dir, "pods", "-w"); code != exit.Interrupted {
		t.Errorf("podd get pods -w: got exit code %d, want %d after the interrupt", code, exit.Interrupted)
	}
	compareGolden(t, "get_watch", out.String())
}

// TestPs_Colors checks that colors do not change the width of the columns of podd ps.
func TestPs_Colors(t *testing.T) {
	l := viewPrinter{PsCmd: &PsCmd{}, now: func() time.Time { return poddtest.At }}
	l.table.ColorCell = paintStatus
	painted := l.rows(poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app")), poddtest.SetCrashed(poddtest.NewPod("db.yaml", 1, "db", "pg"))))
	l.table.ColorCell = nil
	plain := l.rows(poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app")), poddtest.SetCrashed(poddtest.NewPod("db.yaml", 1, "db", "pg"))))
	colors := regexp.MustCompile(`\x1b\[\d+m`)
	if got := colors.ReplaceAllString(painted, ""); got != plain || !strings.Contains(painted, "\x1b[31mCrashLoopBackOff\x1b[0m  ") || !strings.Contains(painted, "\x1b[32mRunning\x1b[0m") {
		t.Errorf("got\n%q\nwant the following text with a red CrashLoopBackOff and a green Running\n%q", painted, plain)
	}
}

// TestGet_Colors checks that podd get colors the values of STATUS, and in the column TYPE only
// "Warning".
func TestGet_Colors(t *testing.T) {
	o := &objectPrinter{GetCmd: &GetCmd{}, columns: []metav1.TableColumnDefinition{{Name: "Type"}, {Name: "Status"}}}
	paint := o.cellPainter(client.Resource{})
	for cell, want := range map[string]string{"TYPE": "TYPE", "Opaque": "Opaque", "Warning": "\x1b[33mWarning\x1b[0m"} {
		if got := paint(0, cell); got != want {
			t.Errorf("column TYPE, cell %s: got %q, want %q", cell, got, want)
		}
	}
	if got := paint(1, "Running"); got != printer.ColorStatus("Running") {
		t.Errorf("column STATUS, cell Running: got %q, want %q", got, printer.ColorStatus("Running"))
	}
}
