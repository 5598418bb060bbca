//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack/registry"
)

// events returns the events that podd events prints for a pod. If pod is "", events returns
// those of all pods and the node.
func (d *daemon) events(pod string) []v1.Event {
	d.t.Helper()
	words := []string{"events", "-o", "json"}
	if pod != "" {
		words = append(words, pod)
	}
	out, _ := d.verb(words...)
	var list v1.EventList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		d.t.Fatalf("decoding the output of podd events: %v: %s", err, out)
	}
	return list.Items
}

// eventWords returns the events as "REASON: MESSAGE".
func eventWords(all []v1.Event) []string {
	var words []string
	for _, e := range all {
		words = append(words, e.Reason+": "+e.Message)
	}
	return words
}

// findEvent returns the first event with this reason whose message contains all parts, or nil.
func findEvent(all []v1.Event, reason string, parts ...string) *v1.Event {
	for i := range all {
		if all[i].Reason == reason && containsAll(all[i].Message, parts) {
			return &all[i]
		}
	}
	return nil
}

// untilEvent waits until an event of a pod with the given reason, whose message contains all parts,
// has occurred at least count times. It returns the event.
func (d *daemon) untilEvent(pod string, count int32, reason string, parts ...string) v1.Event {
	d.t.Helper()
	var found v1.Event
	d.eventually(fmt.Sprintf("the event %s of %q has occurred %d times", reason, pod, count), func() error {
		all := d.events(pod)
		e := findEvent(all, reason, parts...)
		if e == nil || e.Count < count {
			return fmt.Errorf("got the events %q", eventWords(all))
		}
		found = *e
		return nil
	})
	return found
}

// TestEvents checks the events of a pod in podd events and in the file of --event-log. They must have
// the reasons, messages and objects of a kubelet's events. podd must not record them again after a
// restart, and must also record an event if an edit of the manifest is rejected.
func TestEvents(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "events.json")
	d := startDaemon(t, "--event-log", file)
	_, ref := withRegistry(d, registry.Options{})
	p := d.pod("web", withImage(ref, shell("main", serve("web"))))
	d.apply(p)
	// A pod can be ready before the call that started its container returns.
	d.untilEvent("web", 1, "Started")
	all := d.events("web")
	words := eventWords(all)
	for i, want := range []string{
		fmt.Sprintf("Pulling: Pulling image %q", ref), fmt.Sprintf("Pulled: Successfully pulled image %q in ", ref),
		"Created: Created container: main", "Started: Started container main",
	} {
		if i >= len(words) || !strings.HasPrefix(words[i], want) {
			t.Fatalf("events of pod web: got %q, want %q at index %d", words, want, i)
		}
	}
	view, err := d.state()
	if err != nil {
		t.Fatal(err)
	}
	pod := d.find(view, "web").Pod
	want := v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: pod.Name, UID: pod.UID, FieldPath: "spec.containers{main}"}
	if e := all[0]; e.InvolvedObject != want || e.Source != (v1.EventSource{Component: "kubelet", Host: d.host}) || e.Count != 1 || e.Type != "Normal" || len(all) != 4 {
		t.Errorf("events of pod web: got %d, of which the first is %+v; want 4, of which the first is a normal event about %+v from the kubelet, with count 1", len(all), e, want)
	}
	for _, reason := range []string{"Starting", "NodeReady"} {
		if e := findEvent(d.events(""), reason); e == nil || e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != d.host {
			t.Errorf("event %s: got %+v, want an event about the node %s", reason, e, d.host)
		}
	}
	if out, _ := d.verb("events", "web"); !strings.Contains(out, "LAST SEEN") || !strings.Contains(out, "pod/web") || strings.Contains(out, "\x1b") {
		t.Errorf("podd events: got\n%s, want a table of the pod without escape sequences", out)
	}

	// If podd is killed, the event log may lack the last events. Therefore the test waits for them first.
	d.eventually("the file has the event Started", func() error { return checkEventFile(file, "Pulled", "Started") })
	d.kill()
	if err := os.WriteFile(filepath.Join(d.root(), "boot_id"), []byte("of before"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.untilApplied("web")
	if again := d.events("web"); len(again) > 0 {
		t.Errorf("after a restart of podd: got events of pod web %q, want none", eventWords(again))
	}
	if e := findEvent(d.events(""), "Rebooted", "Node "+d.host+" has been rebooted, boot id: "); e == nil || e.Type != "Warning" {
		t.Errorf("event Rebooted after a change of the boot ID: got %+v, want a warning", e)
	}
	d.eventually("the node has the event NodeHasSufficientPID", func() error {
		if all := d.events(""); findEvent(all, "NodeHasSufficientPID", "Node "+d.host+" status is now: NodeHasSufficientPID") == nil {
			return fmt.Errorf("got the events %q", eventWords(all))
		}
		return nil
	})

	bad := strings.Replace(manifestText(d, p), "image:", "imagine:", 1)
	line := strings.Count(bad[:strings.Index(bad, "- command")], "\n") + 1
	d.write("web", bad)
	rejected := d.untilEvent("web", 1, "FailedValidation", d.manifestFile("web")+":", "image: required")
	if rejected.Type != "Warning" || rejected.InvolvedObject.UID != pod.UID || !strings.Contains(rejected.Message, fmt.Sprintf("web.yaml:%d:", line)) {
		t.Errorf("event of the rejected edit: got %+v, want a warning about the pod with web.yaml:%d in its message", rejected, line)
	}
	d.remove("web")
	d.untilGone("web")
	if e := findEvent(d.events("web"), "Killing", "Stopping container main"); e == nil || e.InvolvedObject.FieldPath != "spec.containers{main}" {
		t.Errorf("after the removal of the pod: got events %q, first event Killing %+v; want an event Killing about the container main", eventWords(d.events("web")), e)
	}
	d.eventually("the file has all events", func() error { return checkEventFile(file, "Pulled", "Started", "FailedValidation", "Killing") })
}

// checkEventFile returns an error unless the file contains an event with each reason and only
// root can read the file.
func checkEventFile(path string, reasons ...string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var all []v1.Event
	for line := range strings.Lines(string(text)) {
		var e v1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		all = append(all, e)
	}
	for _, reason := range reasons {
		if findEvent(all, reason) == nil {
			return fmt.Errorf("event log: got %q, want an event with the reason %s", eventWords(all), reason)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		return errors.Join(err, fmt.Errorf("mode of the event log %s: got one that other users can read, want 0600", path))
	}
	return nil
}

// TestEvents_Failures checks that a crash loop is one event with a count. It also checks the
// events of a failed probe, a missing object and a missing program.
func TestEvents_Failures(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ill := shell("main", serve("ill"))
	ill.LivenessProbe = probeEverySecond(execHandler("echo no disk; exit 1"))
	reads := d.pod("reads", shell("main", serve("reads")))
	withVolume(reads, "conf", "/conf", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}}})
	cannot := shell("main", "")
	cannot.Command = []string{"/no/such/program"}
	d.apply(d.pod("crash", shell("main", "exit 3")), d.pod("ill", ill), reads, d.pod("cannot", cannot))

	d.untilEvent("ill", 1, "Unhealthy", "Liveness probe failed: ", "no disk")
	d.untilEvent("ill", 1, "Killing", "Container main failed liveness probe, will be restarted")
	d.untilEvent("reads", 1, "FailedMount", `MountVolume.SetUp failed for volume "conf" : `, "ConfigMap")
	d.untilEvent("cannot", 1, "Failed", "Error: ", "/no/such/program")
	back := d.untilEvent("crash", 2, "BackOff", "Back-off restarting failed container main in pod "+d.podName("crash")+"_default(")
	d.untilEvent("crash", 3, "Created")
	d.untilEvent("crash", 3, "Started")
	all := d.events("crash")
	if n := len(slices.DeleteFunc(slices.Clone(all), func(e v1.Event) bool { return e.Reason != "BackOff" })); n != 1 || !back.LastTimestamp.After(back.FirstTimestamp.Time) {
		t.Errorf("BackOff events of the crash loop: got %d, of which the last is %+v; want 1 with a last time after its first time", n, back)
	}

	d.write("objects", manifestText(d, newConfigMap("conf", map[string]string{"a": "b"})))
	d.untilApplied("reads")
	d.untilEvent("reads", 1, "Started", "Started container main")
}

// TestEvents_Watch checks that podd events -w prints events when they occur.
func TestEvents_Watch(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	out, err := os.Create(filepath.Join(t.TempDir(), "followed"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(binary, "events", "-w", "web")
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "PODD_RUN_DIR="+d.runDir()), out, out
	watch, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.signal(syscall.SIGKILL)
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilApplied("web")
	d.remove("web")
	d.untilGone("web")
	d.eventually("all events are printed", func() error {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			return err
		}
		rest := string(text)
		for _, want := range []string{"LAST SEEN", "already present on machine", "Created container: main", "Started container main", "Stopping container main"} {
			_, after, found := strings.Cut(rest, want)
			if !found {
				return fmt.Errorf("got output\n%s\nwant %q in it", rest, want)
			}
			rest = after
		}
		return nil
	})
}
