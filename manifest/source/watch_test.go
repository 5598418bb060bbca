package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/manifest"
)

// scripted is a source that emits the given batches.
type scripted struct {
	name string
	kind string
	run  func(ctx context.Context, emit func(manifest.Batch)) error
}

func (s scripted) Name() string { return s.name }
func (s scripted) Kind() string { return s.kind }
func (s scripted) Run(ctx context.Context, emit func(manifest.Batch)) error {
	return s.run(ctx, emit)
}

// emitting returns a source that emits the batches and then waits.
func emitting(name, kind string, batches ...manifest.Batch) scripted {
	return scripted{name, kind, func(ctx context.Context, emit func(manifest.Batch)) error {
		for _, b := range batches {
			emit(b)
		}
		<-ctx.Done()
		return nil
	}}
}

// newBatch returns a Batch with these pods.
func newBatch(from string, names ...string) manifest.Batch {
	b := manifest.Batch{IsComplete: true}
	for _, n := range names {
		b.Pods = append(b.Pods, &manifest.Pod{
			Key: types.NamespacedName{Namespace: "default", Name: n}, UID: types.UID(from + n),
			Origin: manifest.Origin{Path: from}, Object: &v1.Pod{},
		})
	}
	return b
}

func problemsIn(s *manifest.Set) string {
	return problemsOf(manifest.Batch{Problems: s.Problems})
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

func TestWatch_Precedence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		sets := Watch(ctx,
			emitting("https://u", manifest.KindURL, newBatch("https://u", "both", "url")),
			emitting("/d", manifest.KindFile, newBatch("/d", "both", "file")),
			scripted{"/late", manifest.KindFile, func(ctx context.Context, _ func(manifest.Batch)) error {
				<-ctx.Done()
				return nil
			}},
		)
		synctest.Wait()
		set := <-sets
		for name, want := range map[string]string{"both": "/d", "file": "/d", "url": "https://u"} {
			if p := set.Pods[key(name)]; p == nil || p.Origin.Path != want {
				t.Errorf("pod %s: got %+v, want the pod from %s", name, p, want)
			}
		}
		if got := fmt.Sprint(set.CompleteSources); got != "map[/d:true /late:false https://u:true]" {
			t.Errorf("CompleteSources: got %s, want false only for /late, the source without a Batch", got)
		}
		cancel()
		if _, open := <-sets; open {
			t.Error("the channel is open after all sources have stopped, want it closed")
		}
	})
}

func TestWatch_SlowReaderGetsNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var batches []manifest.Batch
		for i := range 100 {
			batches = append(batches, newBatch("/d", fmt.Sprint("pod", i)))
		}
		sets := Watch(t.Context(), emitting("/d", manifest.KindFile, batches...))
		synctest.Wait()
		set := <-sets
		if len(set.Pods) != 1 || set.Pods[key("pod99")] == nil {
			t.Errorf("pods of the first set that a slow reader gets: got %v, want only those of the newest batch", set.Pods)
		}
		synctest.Wait()
		select {
		case set := <-sets:
			t.Errorf("got another set with pods %v, want none, because the first set contained the newest batch", set.Pods)
		default:
		}
	})
}

func TestWatch_NoSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		sets := Watch(ctx)
		if set := <-sets; len(set.Pods) != 0 || len(set.CompleteSources) != 0 {
			t.Errorf("got %+v, want an empty set", set)
		}
		cancel()
		if _, open := <-sets; open {
			t.Error("the channel is open after ctx is done, want it closed")
		}
	})
}

func TestWatch_RestartsFailedSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		flaky := scripted{"/d", manifest.KindFile, func(ctx context.Context, emit func(manifest.Batch)) error {
			if runs++; runs == 1 {
				emit(newBatch("/d", "one"))
				return errors.New("out of luck")
			}
			emit(newBatch("/d", "one", "two"))
			<-ctx.Done()
			return nil
		}}
		sets := Watch(t.Context(), flaky)
		synctest.Wait()
		set := <-sets
		if set.Pods[key("one")] == nil || !strings.Contains(problemsIn(set), "out of luck") {
			t.Errorf("after a failure: got %v with %q, want the pod and a problem", set.Pods, problemsIn(set))
		}
		began := time.Now()
		set = <-sets
		if len(set.Pods) != 2 || len(set.Problems) != 0 {
			t.Errorf("after the next run: got %v with %q, want two pods and no problem", set.Pods, problemsIn(set))
		}
		if waited := time.Since(began); waited != minRerunDelay {
			t.Errorf("source restarted after %v, want %v", waited, minRerunDelay)
		}
	})
}

func TestWatch_DuplicateName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sets := Watch(t.Context(),
			emitting("/d", manifest.KindFile, newBatch("/d", "one")),
			emitting("/d", manifest.KindFile, newBatch("/d", "two")))
		synctest.Wait()
		set := <-sets
		if set.Pods[key("one")] == nil || set.Pods[key("two")] != nil || !strings.Contains(problemsIn(set), "configured twice") {
			t.Errorf("got %v with %q, want only the first source and a problem", set.Pods, problemsIn(set))
		}
	})
}

// TestWatch_Property checks that, in any interleaving of sources and receiver, the receiver
// gets the last batch of every source, and no older batch after a newer one.
func TestWatch_Property(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 5).Draw(rt, "batches")
		pause := rapid.SliceOfN(rapid.IntRange(0, 3), 5, 5).Draw(rt, "pause")
		var wrong []string
		synctest.Test(t, func(t *testing.T) { wrong = watchErrors(t, counts, pause) })
		if len(wrong) > 0 {
			rt.Fatal(strings.Join(wrong, "\n"))
		}
	})
}

// watchErrors runs one source for each element of counts, which emits this number of batches. It
// returns a text for each older batch that the receiver got after a newer batch, and for each last
// batch that the receiver did not get.
func watchErrors(t *testing.T, counts, pause []int) (wrong []string) {
	var sources []Source
	for i, n := range counts {
		name := fmt.Sprint("/", i)
		sources = append(sources, scripted{name, manifest.KindFile, func(ctx context.Context, emit func(manifest.Batch)) error {
			for k := range n {
				emit(newBatch(name, fmt.Sprintf("s%d-%d", i, k)))
				<-time.After(time.Duration(pause[i]) * time.Second)
			}
			<-ctx.Done()
			return nil
		}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	newest := make([]int, len(counts))
	for set := range Watch(ctx, sources...) {
		for name := range set.Pods {
			var i, k int
			if _, err := fmt.Sscanf(name.Name, "s%d-%d", &i, &k); err != nil {
				t.Fatal(err)
			}
			if k < newest[i] {
				wrong = append(wrong, fmt.Sprintf("source %d: got batch %d and then the older batch %d", i, newest[i], k))
			}
			newest[i] = k
		}
	}
	for i, n := range counts {
		if newest[i] != n-1 {
			wrong = append(wrong, fmt.Sprintf("source %d: the last batch received is %d, want %d", i, newest[i], n-1))
		}
	}
	return wrong
}

// TestWatch_FirstFileByName checks which pod is used if two files contain the same pod. It must be
// the pod of the file with the first name, even if this file was created later. The other pod
// becomes a Problem.
func TestWatch_FirstFileByName(t *testing.T) {
	d := newTree(t)
	d.write("web.yaml", yaml("web=old"))
	ctx, cancel := context.WithCancel(t.Context())
	sets := Watch(ctx, NewDir(d.path, Options{NodeName: "node", CacheDir: t.TempDir()}))
	until := func(from, problems string) {
		t.Helper()
		var last *manifest.Set
		for limit := time.After(5 * time.Minute); ; {
			select {
			case last = <-sets:
			case <-limit:
				t.Fatalf("last set: got %v and\n%s\nwant the pod from %s and\n%s", last.Pods, problemsIn(last), from, problems)
			}
			if p := last.Pods[key("web-node")]; p != nil && p.Origin.Path == d.in(from) && problemsIn(last) == problems {
				return
			}
		}
	}
	until("web.yaml", "")
	d.write("a.yaml", yaml("web=new"))
	until("a.yaml", d.in("web.yaml")+":3:12: error: metadata.name: pod default/web is also defined at "+d.in("a.yaml")+":1, which takes precedence; rename or remove one")
	d.remove("a.yaml")
	until("web.yaml", "")
	cancel()
	for range sets {
	}
}
