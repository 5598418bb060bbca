package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// shown is a podd with pods of two namespaces and a Secret.
func shown(t *testing.T) *fakePodd {
	t.Helper()
	system := up(podAt("dns.yaml", 1, "dns", "app", "side"))
	system.Pod.Namespace = "kube-system"
	web := up(podAt("web.yaml", 1, "web", "app"))
	web.Pod.Labels = map[string]string{"app": "web"}
	v := viewOf(web, crashed(podAt("db.yaml", 1, "db", "pg")), system)
	v.Machine = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: *kubeTime(0)}}
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key\x1b[2J", CreationTimestamp: *kubeTime(0)}, Data: map[string][]byte{"a": []byte("x")}}
	secret.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}}
	v.Objects = func() *server.Objects { return &server.Objects{Secrets: []*server.ObjectView{{Object: secret}}} }
	return serve(t, v)
}

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
		"get_secret_yaml":  "secrets -o yaml", // managers are hidden
		"get_list_json":    "namespaces -o json",
		"get_no_resource":  "deployments",
		"get_no_pod":       "pod wbe",
		"get_no_secret":    "secret none",
		"get_bad_selector": "pods -l a=(",
	} {
		f := shown(t) // revisions grow with what is asked for
		got := f.podd(t, append([]string{"get"}, strings.Fields(words)...)...)
		golden(t, name, fmt.Sprintf("%s-- stderr, code %d --\n%s", got.Out, got.Code, got.Err))
	}
}

// TestGetWatch: what changes stands below what was there.
func TestGetWatch(t *testing.T) {
	f := shown(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	lines := 0
	s := Streams{Err: nowhere, Out: writerFunc(func(b []byte) (int, error) {
		out.Write(b)
		lines += strings.Count(string(b), "\n")
		switch lines {
		case 3: // heads and two pods
			v := *f.View()
			v.Revision++
			v.Pods = append([]*server.PodView{}, v.Pods...)
			v.Pods[1] = crashed(podAt("web.yaml", 1, "web", "app"))
			f.Publish(&v)
		case 4:
			cancel()
		}
		return len(b), nil
	})}
	err := execute(ctx, []string{"podd", "get", "--run-dir", f.dir, "pods", "-w"}, s)
	if code := report(err, s); code != codeInterrupted {
		t.Errorf("%v", err)
	}
	golden(t, "get_watch", out.String())
}

// TestPaint: the colour is in the cell alone, columns stay where they were.
func TestPaint(t *testing.T) {
	l := listing{PsCmd: &PsCmd{}, now: func() time.Time { return at }}
	l.table.paint = paintStatus
	painted := l.rows(viewOf(up(podAt("web.yaml", 1, "web", "app")), crashed(podAt("db.yaml", 1, "db", "pg"))))
	l.table.paint = nil
	bare := l.rows(viewOf(up(podAt("web.yaml", 1, "web", "app")), crashed(podAt("db.yaml", 1, "db", "pg"))))
	colours := regexp.MustCompile(`\x1b\[\d+m`)
	if got := colours.ReplaceAllString(painted, ""); got != bare || !strings.Contains(painted, "\x1b[31mCrashLoopBackOff\x1b[0m  ") || !strings.Contains(painted, "\x1b[32mRunning\x1b[0m") {
		t.Errorf("painted:\n%q\nbare:\n%s", painted, bare)
	}
}

// TestPaintTypes: of the TYPE of a row only warnings are coloured, in get and events
// alike.
func TestPaintTypes(t *testing.T) {
	o := &objects{GetCmd: &GetCmd{}, columns: []metav1.TableColumnDefinition{{Name: "Type"}, {Name: "Status"}}}
	paint := o.paint(kubeResource{})
	for cell, want := range map[string]string{"TYPE": "TYPE", "Opaque": "Opaque", "Warning": "\x1b[33mWarning\x1b[0m"} {
		if got := paint(0, cell); got != want {
			t.Errorf("%s: %q, want %q", cell, got, want)
		}
	}
	if got := paint(1, "Running"); got != tinted("Running") {
		t.Errorf("a status: %q", got)
	}
}

func TestTinted(t *testing.T) {
	for status, want := range map[string]string{
		"Running": "32", "Completed": "32", "CrashLoopBackOff": "31", "Init:Error": "31", "ErrImagePull": "31", "OOMKilled": "31",
		"Pending": "33", "ContainerCreating": "33", "Init:0/2": "33", "Terminating": "33",
	} {
		if got := tinted(status); got != "\x1b["+want+"m"+status+"\x1b[0m" {
			t.Errorf("%s: %q", status, got)
		}
	}
}
