package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/pull/verify"
	"podd/runtime"
)

const (
	image = "registry.example/web:1"
	repo  = "registry.example/web"
	id    = "sha256:1"
)

var byOne = kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{{UID: "u", Namespace: "team", Name: "one", CredentialHash: "h"}}}

// node contains the IDs of the images on the node, by name.
type node map[string]string

func (n node) ImageStatus(_ context.Context, name string) (runtime.Image, bool, error) {
	for tag, id := range n {
		if name == tag || name == id {
			return runtime.Image{ID: id}, true, nil
		}
	}
	return runtime.Image{}, false, nil
}

func (n node) ListImages(context.Context) (all []runtime.Image, err error) {
	for _, id := range n {
		all = append(all, runtime.Image{ID: id})
	}
	return all, nil
}

// check compares the state of an image with want.
func check(t *testing.T, s *Store, name, id string, want verify.State) {
	t.Helper()
	if got, err := s.Lookup(name, id); got.State != want || (err != nil) != (want == verify.Unreadable) {
		t.Errorf("Lookup(%s, %s) = %+v, %v; want state %d", name, id, got, err, want)
	}
}

// succeed fails the test if one of errs is not nil.
func succeed(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func checkCount(t *testing.T, s *Store, wantIntents, wantRecords int) {
	t.Helper()
	if intents, records := s.Count(); intents != wantIntents || records != wantRecords {
		t.Errorf("got %d intents and %d records; want %d intents and %d records", intents, records, wantIntents, wantRecords)
	}
}

func TestStore(t *testing.T) {
	root := t.TempDir()
	s := New(root)
	check(t, s, image, id, verify.Preloaded)
	succeed(t, s.BeginPull(image, ""))
	check(t, s, image, id, verify.Interrupted)
	checkCount(t, s, 1, 0)
	succeed(t, s.Add(id, repo, byOne), s.EndPull(image, true))
	checkCount(t, s, 0, 1)
	got, err := New(root).Lookup(image, id)
	want := verify.Records{State: verify.Recorded, Credentials: map[string]kubelet.ImagePullCredentials{repo: byOne}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("after a restart (-want +got):\n%s%v", diff, err)
	}
	for _, dir := range []string{"image_manager", "image_manager/pulling", "image_manager/pulled"} {
		if info, err := os.Stat(filepath.Join(root, dir)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: got %v (error %v); want mode 0700", dir, info.Mode(), err)
		}
	}
}

// TestStore_Failed checks that a failed pull leaves no intent, also if another pull is in progress.
func TestStore_Failed(t *testing.T) {
	s := New(t.TempDir())
	succeed(t, s.BeginPull(image, ""), s.BeginPull(image, ""), s.EndPull(image, true))
	check(t, s, image, id, verify.Interrupted)
	succeed(t, s.EndPull(image, true))
	check(t, s, image, id, verify.Preloaded)
	checkCount(t, s, 0, 0)
}

// TestPowerCut checks the state after a power cut at each moment of a pull.
func TestPowerCut(t *testing.T) {
	begin := func(s *Store) error { return s.BeginPull(image, "") }
	beginPreloaded := func(s *Store) error { return s.BeginPull(image, "sha256:old") }
	add := func(s *Store) error { return s.Add(id, repo, byOne) }
	end := func(s *Store) error { return s.EndPull(image, true) }
	for name, test := range map[string]struct {
		steps     []func(*Store) error
		present   string // the ID of the image after the power cut
		want      verify.State
		unchanged bool // other names of the image are not affected
	}{
		"before the pull":                      {nil, id, verify.Preloaded, true},
		"after the intent":                     {[]func(*Store) error{begin}, id, verify.Recorded, false},
		"after the record":                     {[]func(*Store) error{begin, add}, id, verify.Recorded, false},
		"after the pull":                       {[]func(*Store) error{begin, add, end}, id, verify.Recorded, false},
		"a preloaded image was not replaced":   {[]func(*Store) error{beginPreloaded}, "sha256:old", verify.Preloaded, true},
		"a preloaded image was replaced":       {[]func(*Store) error{beginPreloaded}, id, verify.Recorded, false},
		"a preloaded image, after the record":  {[]func(*Store) error{beginPreloaded, add}, id, verify.Recorded, false},
		"a preloaded image was replaced twice": {[]func(*Store) error{beginPreloaded, add, end, begin}, "sha256:3", verify.Recorded, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			before := New(root)
			for _, step := range test.steps {
				succeed(t, step(before))
			}
			s := New(root)
			succeed(t, s.Recover(t.Context(), node{image: test.present}))
			check(t, s, image, test.present, test.want)
			other := verify.Recorded
			if test.unchanged {
				other = verify.Preloaded
			}
			check(t, s, "registry.example/other:1", test.present, other)
			age(t, filepath.Join(s.pullingDir, fileName(image)))
			succeed(t, s.Prune(t.Context(), node{image: test.present}))
			if intents, _ := s.Count(); intents != 0 {
				t.Errorf("got %d intents, want none", intents)
			}
			check(t, s, image, test.present, test.want)
		})
	}
}

// age changes the modification time of a file as if it was written two hours ago, if the file exists.
func age(t *testing.T, path string) {
	t.Helper()
	before := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(path, before, before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// TestPrune_OldIntent checks that the intent of an interrupted pull remains while the runtime may
// complete the pull, and that Prune removes it when it is old.
func TestPrune_OldIntent(t *testing.T) {
	root := t.TempDir()
	succeed(t, New(root).BeginPull(image, "sha256:old"))
	s := New(root)
	for _, n := range []node{{}, {image: "sha256:old"}} {
		succeed(t, s.Recover(t.Context(), n), s.Prune(t.Context(), n), s.Prune(t.Context(), n))
		check(t, s, image, id, verify.Interrupted)
	}
	age(t, filepath.Join(s.pullingDir, fileName(image)))
	age(t, filepath.Join(s.pullingDir, presentName(image)))
	succeed(t, s.Recover(t.Context(), node{}))
	check(t, s, image, id, verify.Interrupted)
	succeed(t, s.Prune(t.Context(), node{}))
	checkCount(t, s, 0, 0)
	if left, err := os.ReadDir(filepath.Join(root, "image_manager", "pulling")); err != nil || len(left) > 0 {
		t.Errorf("files in pulling: got %v (error %v), want none", left, err)
	}
}

// TestLookup_OtherRepository checks that an interrupted pull of an image is considered if the same image
// was also pulled from another repository.
func TestLookup_OtherRepository(t *testing.T) {
	const other = "registry.example/other"
	s := New(t.TempDir())
	succeed(t, s.Add(id, other, byOne), s.BeginPull(image, ""), s.EndPull(image, false))
	got, err := s.Lookup(image, id)
	want := verify.Records{State: verify.Recorded, Credentials: map[string]kubelet.ImagePullCredentials{other: byOne, repo: {}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("during the pull (-want +got):\n%s%v", diff, err)
	}
	put(t, filepath.Dir(filepath.Dir(s.pullingDir)), "pulling/"+fileName(image), "x")
	got, err = s.Lookup(image, id)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("with a damaged intent (-want +got):\n%s%v", diff, err)
	}
}

// TestPrune_InProgress checks that Prune does not touch a pull in progress.
func TestPrune_InProgress(t *testing.T) {
	s := New(t.TempDir())
	succeed(t, s.BeginPull(image, ""))
	age(t, filepath.Join(s.pullingDir, fileName(image)))
	succeed(t, s.Prune(t.Context(), node{}), s.Prune(t.Context(), node{image: id}))
	check(t, s, image, id, verify.Interrupted)
	succeed(t, s.Add(id, repo, byOne), s.EndPull(image, true))
	check(t, s, image, id, verify.Recorded)
}

// unlisted is a node whose runtime reports the status of an image by its name, but lists no images.
type unlisted struct{ node }

func (unlisted) ListImages(context.Context) ([]runtime.Image, error) { return nil, nil }

// during is a node that calls its function add after ListImages has determined the images.
type during struct {
	node
	add func()
}

func (d during) ListImages(ctx context.Context) ([]runtime.Image, error) {
	all, err := d.node.ListImages(ctx)
	d.add()
	return all, err
}

func TestPrune(t *testing.T) {
	s := New(t.TempDir())
	succeed(t, s.Add(id, repo, byOne), s.Add("sha256:2", repo, byOne))
	succeed(t, s.Prune(t.Context(), unlisted{node{image: id, "b": "sha256:2"}}))
	checkCount(t, s, 0, 2)
	succeed(t, s.Prune(t.Context(), during{node{}, func() { succeed(t, s.Add(id, repo, byOne)) }}))
	check(t, s, image, id, verify.Recorded)
	check(t, s, "b", "sha256:2", verify.Preloaded)
	failed := errors.New("no runtime")
	if err := s.Prune(t.Context(), failing{failed}); !errors.Is(err, failed) {
		t.Errorf("got error %v, want %v", err, failed)
	}
	checkCount(t, s, 0, 1)
	succeed(t, s.Prune(t.Context(), node{}))
	checkCount(t, s, 0, 0)
}

// failing is a node without a runtime.
type failing struct{ err error }

func (f failing) ImageStatus(context.Context, string) (runtime.Image, bool, error) {
	return runtime.Image{}, false, f.err
}
func (f failing) ListImages(context.Context) ([]runtime.Image, error) { return nil, f.err }

// put writes a file below the directory of the records.
func put(t *testing.T, root, name, text string) {
	t.Helper()
	at := filepath.Join(root, "image_manager", name)
	succeed(t, os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600))
}

// TestKubeletFiles checks that podd reads the files of a kubelet, and that its own files are the same
// except for the time.
func TestKubeletFiles(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		root := t.TempDir()
		record := `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/` + version + `","lastUpdatedTime":"2026-01-02T03:04:05Z","imageRef":"sha256:1",` +
			`"credentialMapping":{"registry.example/web":{"kubernetesSecrets":[{"uid":"u","namespace":"team","name":"one","credentialHash":"h"}]}}}`
		put(t, root, "pulled/"+fileName(id), record+"\n")
		intent := `{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/` + version + `","image":"registry.example/new:1"}`
		put(t, root, "pulling/"+fileName("registry.example/new:1"), intent+"\n")
		s := New(root)
		got, err := s.Lookup(image, id)
		if diff := cmp.Diff(map[string]kubelet.ImagePullCredentials{repo: byOne}, got.Credentials); err != nil || diff != "" {
			t.Errorf("%s (-want +got):\n%s%v", version, diff, err)
		}
		check(t, s, "registry.example/new:1", "sha256:2", verify.Interrupted)
		if version != "v1beta1" {
			continue
		}
		other := New(t.TempDir())
		succeed(t, other.Add(id, repo, byOne), other.BeginPull("registry.example/new:1", ""))
		data, err := os.ReadFile(filepath.Join(other.pulledDir, fileName(id)))
		before, after, _ := strings.Cut(record, "2026-01-02T03:04:05Z")
		if text := string(data); err != nil || !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after) {
			t.Errorf("record: got %s, want %s with another time; %v", data, record, err)
		}
		if data, err := os.ReadFile(filepath.Join(other.pullingDir, fileName("registry.example/new:1"))); err != nil || string(data) != intent {
			t.Errorf("intent: got %s, want %s; %v", data, intent, err)
		}
	}
}

// TestBrokenFiles checks that a file that cannot be read is replaced by the next pull, and removed when
// its image is absent.
func TestBrokenFiles(t *testing.T) {
	at := func(root string) string { return filepath.Join(root, "image_manager/pulled", fileName(id)) }
	for name, create := range map[string]func(t *testing.T, root string){
		"empty":        func(t *testing.T, root string) { put(t, root, "pulled/"+fileName(id), "") },
		"not JSON":     func(t *testing.T, root string) { put(t, root, "pulled/"+fileName(id), `{"kind":`) },
		"zeros":        func(t *testing.T, root string) { put(t, root, "pulled/"+fileName(id), strings.Repeat("\x00", 100)) },
		"another kind": func(t *testing.T, root string) { put(t, root, "pulled/"+fileName(id), `{"kind":"Pod"}`) },
		"a wrong type": func(t *testing.T, root string) { put(t, root, "pulled/"+fileName(id), `{"credentialMapping":[]}`) },
		"of another image": func(t *testing.T, root string) {
			data, err := encodeRecord("sha256:2", nil)
			succeed(t, err)
			put(t, root, "pulled/"+fileName(id), string(data))
		},
		"too large": func(t *testing.T, root string) {
			put(t, root, "pulled/"+fileName(id), `{"kind":"`+strings.Repeat("x", maxRecordSize)+`"}`)
		},
		"a symbolic link": func(t *testing.T, root string) {
			put(t, root, "target", "")
			succeed(t, os.MkdirAll(filepath.Dir(at(root)), 0o700), os.Symlink("../target", at(root)))
		},
		"a FIFO": func(t *testing.T, root string) {
			succeed(t, os.MkdirAll(filepath.Dir(at(root)), 0o700), syscall.Mkfifo(at(root), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			create(t, root)
			s := New(root)
			check(t, s, image, id, verify.Unreadable)
			succeed(t, s.Prune(t.Context(), node{image: id}))
			check(t, s, image, id, verify.Unreadable)
			succeed(t, s.Add(id, repo, byOne))
			check(t, s, image, id, verify.Recorded)
			succeed(t, os.Remove(at(root)))
			create(t, root)
			succeed(t, s.Prune(t.Context(), node{}))
			checkCount(t, s, 0, 0)
		})
	}
}

// TestUnreadableIntent checks that an intent that cannot be read remains until the next pull of its
// image, so that the image is not treated as preloaded.
func TestUnreadableIntent(t *testing.T) {
	intent, err := encodeIntent("another image")
	succeed(t, err)
	for name, create := range map[string]func(path string) error{
		"truncated":        func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"of another image": func(path string) error { return os.WriteFile(path, intent, 0o600) },
		"read error":       func(path string) error { return os.Symlink("loop", path) },
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t.TempDir())
			succeed(t, os.MkdirAll(s.pullingDir, 0o700))
			path := filepath.Join(s.pullingDir, fileName(image))
			succeed(t, create(path))
			if name != "read error" {
				age(t, path)
			}
			if err := s.Recover(t.Context(), node{image: id}); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got error %v, want one that names %s", err, path)
			}
			check(t, s, image, id, verify.Unreadable)
			succeed(t, s.Prune(t.Context(), node{image: id}))
			check(t, s, image, id, verify.Unreadable)
			succeed(t, s.BeginPull(image, ""), s.Add(id, repo, byOne), s.EndPull(image, true))
			check(t, s, image, id, verify.Recorded)
			checkCount(t, s, 0, 1)
		})
	}
}

// TestLeftovers checks that Prune removes the files that a power cut can leave, and no other files.
func TestLeftovers(t *testing.T) {
	root := t.TempDir()
	put(t, root, "pulling/.podd-ABC", "x")
	put(t, root, "pulled/.podd-ABC", "x")
	put(t, root, "pulling/"+presentName(image), id)
	put(t, root, "pulling/notes", "x")
	s := New(root)
	succeed(t, s.Prune(t.Context(), node{image: id}))
	checkCount(t, s, 0, 0)
	if left, err := filepath.Glob(filepath.Join(root, "image_manager/*/*")); err != nil || len(left) != 4 {
		t.Errorf("files that are not old: got %v (error %v), want all 4", left, err)
	}
	for _, name := range []string{"pulling/.podd-ABC", "pulled/.podd-ABC", "pulling/" + presentName(image)} {
		age(t, filepath.Join(root, "image_manager", name))
	}
	succeed(t, s.Prune(t.Context(), node{}))
	left, err := filepath.Glob(filepath.Join(root, "image_manager/*/*"))
	if want := []string{filepath.Join(root, "image_manager/pulling/notes")}; err != nil || !cmp.Equal(left, want) {
		t.Errorf("files after Prune: got %v, want %v (error %v)", left, want, err)
	}
}

// TestFullDisk checks that a pull does not begin if its intent cannot be written.
func TestFullDisk(t *testing.T) {
	root := t.TempDir()
	succeed(t, os.WriteFile(filepath.Join(root, "image_manager"), nil, 0o600)) // not a directory
	s := New(root)
	if err := s.BeginPull(image, ""); err == nil || !strings.Contains(err.Error(), image) {
		t.Errorf("BeginPull: got error %v, want one that names the image", err)
	}
	if err := s.Add(id, repo, byOne); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("Add: got error %v, want one that names the image", err)
	}
}

// TestConcurrent checks that parallel additions to one record are all kept, and that Lookup never sees
// a preloaded image during a pull.
func TestConcurrent(t *testing.T) {
	s := New(t.TempDir())
	succeed(t, s.BeginPull(image, ""))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			c := kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{{UID: fmt.Sprint(i), Name: "one"}}}
			if err := errors.Join(s.BeginPull(image, ""), s.Add(id, repo, c), s.EndPull(image, true)); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if r, err := s.Lookup(image, id); err != nil || r.State == verify.Preloaded {
				t.Errorf("Lookup during a pull: got %+v (error %v), want another state than Preloaded", r, err)
			}
		})
	}
	all.Wait()
	succeed(t, s.EndPull(image, true))
	if r, err := s.Lookup(image, id); err != nil || len(r.Credentials[repo].KubernetesSecrets) != 20 {
		t.Errorf("Lookup after 20 pulls: got %+v (error %v), want 20 Secrets", r, err)
	}
	checkCount(t, s, 0, 1)
}

// TestSize checks that a record with the maximum number of entries can be read.
func TestSize(t *testing.T) {
	s := New(t.TempDir())
	long := strings.Repeat("n", 253)
	merged := map[string]kubelet.ImagePullCredentials{}
	for i := range verify.MaxRepositories {
		var c kubelet.ImagePullCredentials
		for j := range verify.MaxCredentials {
			c.KubernetesSecrets = append(c.KubernetesSecrets, kubelet.ImagePullSecret{UID: long[:63], Namespace: long[:63], Name: fmt.Sprint(long, j), CredentialHash: long[:64]})
			c.KubernetesServiceAccounts = append(c.KubernetesServiceAccounts, kubelet.ImagePullServiceAccount{UID: long[:63], Namespace: long[:63], Name: fmt.Sprint(long, j)})
		}
		merged[fmt.Sprint(long, i)] = c
	}
	data, err := encodeRecord(id, merged)
	if err != nil || len(data) > maxRecordSize {
		t.Errorf("got %d bytes, %v; want at most %d", len(data), err, maxRecordSize)
	}
	succeed(t, os.MkdirAll(s.pulledDir, 0o700), os.WriteFile(filepath.Join(s.pulledDir, fileName(id)), data, 0o600))
	check(t, s, image, id, verify.Recorded)
}

// FuzzDecode checks that no content of a file causes a panic, and that a decoded record is the same
// after it was written again.
func FuzzDecode(f *testing.F) {
	record, err := encodeRecord(id, map[string]kubelet.ImagePullCredentials{repo: byOne})
	if err != nil {
		f.Fatal(err)
	}
	intent, err := encodeIntent(image)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Add(intent)
	f.Add([]byte(`{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1alpha1","imageRef":"x","credentialMapping":null,"unknown":1}`))
	f.Add([]byte(`{"kind":"ImagePulledRecord"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = decodeIntent(data)
		r, err := decodeRecord(data)
		if err != nil {
			return
		}
		again, err := encodeRecord(r.ImageRef, r.CredentialMapping)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeRecord(again); err != nil || got.ImageRef != r.ImageRef || len(got.CredentialMapping) != len(r.CredentialMapping) {
			t.Errorf("got %+v (error %v); want %+v", got, err, r)
		}
		verify.Decide(verify.Input{Image: image, IsPresent: true, Policy: &verify.Policy{}, Records: verify.Records{State: verify.Recorded, Credentials: r.CredentialMapping}})
	})
}
