package events

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var (
	day = time.Date(2030, 1, 2, 3, 4, 5, 600, time.UTC)
	web = types.NamespacedName{Namespace: "shop", Name: "web-node"}
)

func note(reason, message string, after time.Duration) Occurrence {
	return Occurrence{Type: v1.EventTypeNormal, Reason: reason, Message: message, Pod: web, UID: "u", FieldPath: "spec.containers{app}", Time: day.Add(after)}
}

// TestEvent checks that an event has all fields that kubectl prints, and all fields by which
// kubectl selects events.
func TestEvent(t *testing.T) {
	l := New(Options{Node: "node", FirstRevision: 7})
	l.Add(note("Pulled", "image pulled", 0), Occurrence{Type: v1.EventTypeWarning, Reason: "NodeNotReady", Message: "m", Time: day})
	l.Add(note("Pulled", "image pulled", time.Minute))
	got, revision := l.Events(0)
	if revision != 10 || len(got) != 2 {
		t.Fatalf("got %d events at revision %d, want 2 at 10", len(got), revision)
	}
	want := &v1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", ResourceVersion: "10", CreationTimestamp: metav1.NewTime(day), UID: got[1].UID,
		},
		InvolvedObject: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-node", UID: "u", FieldPath: "spec.containers{app}"},
		Reason:         "Pulled", Message: "image pulled", Type: "Normal", Count: 2,
		Source:         v1.EventSource{Component: "kubelet", Host: "node"},
		FirstTimestamp: metav1.NewTime(day), LastTimestamp: metav1.NewTime(day.Add(time.Minute)),
		ReportingController: "kubelet", ReportingInstance: "node",
	}
	want.Name = fmt.Sprintf("web-node.%x", day.UnixNano())
	if diff := cmp.Diff(want, got[1]); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	node := v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node", UID: "node"}
	if e := got[0]; e.Namespace != "default" || e.InvolvedObject != node || e.UID == got[1].UID {
		t.Errorf("event of the node: got %+v, want namespace default, the Node as its object, and its own UID", e)
	}
}

// TestEvent_Annotations checks that an event has the annotations of its newest occurrence, and that
// a caller that modifies them does not change the log.
func TestEvent_Annotations(t *testing.T) {
	l := New(Options{Node: "node"})
	for _, usage := range []string{"1Mi", "2Mi"} {
		n := note("Evicted", "low on memory", 0)
		n.Annotations = map[string]string{"offending_pod_usage": usage}
		l.Add(n)
	}
	want := map[string]string{"offending_pod_usage": "2Mi"}
	for range 2 {
		got, _ := l.Events(0)
		if len(got) != 1 || !maps.Equal(got[0].Annotations, want) {
			t.Fatalf("got events %+v, want one with the annotations %q", got, want)
		}
		got[0].Annotations["offending_pod_usage"] = "modified"
	}
}

// lines returns events as "REASON MESSAGE xCOUNT", for example "BackOff again x3".
func lines(l *Log, after uint64) []string {
	all, _ := l.Events(after)
	var text []string
	for _, e := range all {
		text = append(text, fmt.Sprintf("%s %s x%d", e.Reason, e.Message, e.Count))
	}
	return text
}

// TestLog_Repetitions checks that repetitions of an event are stored as one event. If many events
// differ only in their messages, further events of this kind are combined.
func TestLog_Repetitions(t *testing.T) {
	l := New(Options{Node: "node"})
	for i := range 10000 {
		at := time.Duration(i) * time.Millisecond
		l.Add(note("BackOff", "again", at), note("Unhealthy", fmt.Sprintf("at %d", i), at))
	}
	got := lines(l, 0)
	if len(got) != 12 || !slices.Contains(got, "BackOff again x10000") || !slices.Contains(got, "Unhealthy (combined from similar events): at 9999 x9990") {
		t.Errorf("got events %q, want 12, among them one for all repetitions of BackOff, and one that combines 9990 occurrences of Unhealthy", got)
	}
	// After a long time, events with new messages are not combined any longer.
	l.Add(note("Unhealthy", "later", time.Hour))
	if got := lines(l, 20000); !slices.Equal(got, []string{"Unhealthy later x1"}) {
		t.Errorf("events after the pause: got %q, want only \"Unhealthy later x1\"", got)
	}
}

// TestLog_Limits checks that the numbers of events per object and in total are limited, and that the
// newest events are retained.
func TestLog_Limits(t *testing.T) {
	l := New(Options{Node: "node", MaxEvents: 50, MaxEventsPerObject: 20})
	for i := range 500 {
		l.Add(note(fmt.Sprint("Reason", i), "m", time.Duration(i)))
	}
	if got := lines(l, 0); len(got) != 20 || got[19] != "Reason499 m x1" {
		t.Errorf("events of one pod: got %q, want the newest 20", got)
	}
	for i := range 500 {
		n := note("Started", "m", time.Second)
		n.Pod.Name = fmt.Sprint("pod", i)
		l.Add(n)
	}
	if got := lines(l, 0); len(got) != 50 || len(l.objects) != 50 || len(got) != l.allSeries.Len() {
		t.Errorf("got %d events of %d objects, want 50 of 50", len(got), len(l.objects))
	}
}

// TestLog_Properties checks that the log contains all events that it has not dropped, that Events
// returns newer events in the order of their revisions, and that names are unique.
func TestLog_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(Options{Node: "node", MaxEvents: rapid.SampledFrom([]int{3, 1000}).Draw(t, "most"), MaxEventsPerObject: rapid.SampledFrom([]int{2, 1000}).Draw(t, "each")})
		bounded := l.o.MaxEvents < 1000 || l.o.MaxEventsPerObject < 1000
		total := 0
		followed := map[string]*v1.Event{} // the events of a client that follows the log
		var after uint64
		for range rapid.IntRange(1, 60).Draw(t, "rounds") {
			var notes []Occurrence
			for range rapid.IntRange(0, 5).Draw(t, "notes") {
				n := note(rapid.SampledFrom([]string{"A", "B"}).Draw(t, "reason"), fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "message")), 0)
				n.Pod.Name = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pod")
				notes = append(notes, n)
			}
			total += len(notes)
			l.Add(notes...)
			newer, revision := l.Events(after)
			last := after
			for _, e := range newer {
				var r uint64
				if fmt.Sscan(e.ResourceVersion, &r); r <= last || r > revision {
					t.Fatalf("got revision %d after revision %d, want a higher one, and at most the newest, %d", r, last, revision)
				}
				if had := followed[e.Name]; had != nil && (e.Count <= had.Count || e.UID != had.UID) {
					t.Fatalf("event %s: got count %d after count %d, want a higher one", e.Name, e.Count, had.Count)
				}
				last, followed[e.Name] = r, e
			}
			after = revision
		}
		all, _ := l.Events(0)
		counted := 0
		for _, e := range all {
			counted += int(e.Count)
			if diff := cmp.Diff(e, followed[e.Name]); diff != "" {
				t.Fatalf("event %s differs from the client's (-log +client):\n%s", e.Name, diff)
			}
		}
		if !bounded && (counted != total || len(all) != len(followed)) {
			t.Fatalf("got %d occurrences, want %d; got %d events, want %d as at the client", counted, total, len(all), len(followed))
		}
		if len(all) > l.o.MaxEvents {
			t.Fatalf("got %d events, want at most %d", len(all), l.o.MaxEvents)
		}
	})
}

// TestLog_Changed checks that a waiting client is woken by new events and misses none.
func TestLog_Changed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Node: "node", FirstRevision: 100})
		counts := make([]int32, 3)
		var followers sync.WaitGroup
		for i := range counts {
			followers.Go(func() {
				for at := uint64(100); counts[i] < 50; {
					newer, revision := l.Events(at)
					for _, e := range newer {
						counts[i] = e.Count
					}
					at = revision
					if counts[i] < 50 {
						<-l.Changed(at)
					}
				}
			})
		}
		for range 50 {
			l.Add(note("A", "m", 0))
			time.Sleep(time.Millisecond)
		}
		followers.Wait()
		synctest.Wait()
		select {
		case <-l.Changed(99):
		default:
			t.Error("Changed of an older revision: got an open channel, want it closed")
		}
		select {
		case <-l.Changed(150):
			t.Error("Changed of the newest revision: got a closed channel, want it open")
		default:
		}
	})
}

// TestLog_Memory checks that the events of a hundred starting pods, each with three containers,
// need little memory.
func TestLog_Memory(t *testing.T) {
	l := New(Options{Node: "node"})
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 100 {
		for c := range 3 {
			for _, reason := range []string{"Pulled", "Created", "Started"} {
				n := note(reason, strings.Repeat("x", 60)+fmt.Sprint(c), 0)
				n.Pod.Name, n.FieldPath = fmt.Sprint("pod", i), fmt.Sprint("spec.containers{", c, "}")
				l.Add(n)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 900<<10 {
		t.Errorf("%d events need %d bytes, want at most 900 KiB", l.allSeries.Len(), kept)
	} else {
		t.Logf("%d events need %d bytes", l.allSeries.Len(), kept)
	}
	runtime.KeepAlive(l)
}
