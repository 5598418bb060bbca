package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
	"podd/reconcile/render"
	"podd/runtime/runtimetest/recording"
)

// TestKubeletFiles prepares the volumes of recorded pods. It compares the mode, the owner and the
// content of every file, directory and link with the recording of a kubelet.
func TestKubeletFiles(t *testing.T) {
	on, pods := recording.Read(t, "../../testdata/render/kubelet-api.jsonl.gz")
	objects := decode.File([]byte(on.Objects), decode.Options{}).Objects
	set := &manifest.Set{ObjectsBySource: map[string]manifest.Objects{"": objects}, CompleteSources: map[string]bool{"": true}}
	volumes := 0
	for _, k := range pods {
		if len(k.Files) == 0 {
			continue
		}
		f := decode.File(k.Manifest, decode.Options{})
		if len(f.Pods) == 0 {
			t.Errorf("%s: %v", k.Manifest, f.Problems)
			continue
		}
		paths := prepareAll(t, f.Pods[0], refs.Resolve(f.Pods[0], set, "salt", nil), on)
		for name, want := range k.Files {
			volumes++
			if diff := cmp.Diff(want, listing(t, paths[name])); diff != "" {
				t.Errorf("%s: volume %s (-kubelet +podd):\n%s", k.Manifest, name, diff)
			}
		}
	}
	if volumes < 40 {
		t.Errorf("got %d volumes in the recording, want at least 40", volumes)
	}
}

// prepareAll prepares the volumes of a pod and the subPaths of its containers, and returns the
// paths of the volumes by name.
func prepareAll(t *testing.T, p *manifest.Pod, s *refs.Resolved, on recording.Node) map[string]string {
	t.Helper()
	d := newDir(t)
	node := render.Node{
		Name: on.Name, Capacity: render.Resources{MilliCPU: on.CPUs * 1000, Memory: on.Memory},
		Allocatable: render.Resources{Memory: on.Memory - on.ReservedMemory},
	}
	paths, err := d.Prepare(t.Context(), p, render.PodVolumes{Pod: p, Refs: s, Node: node})
	must(t, err)
	for i := range p.Object.Spec.Containers {
		c := &p.Object.Spec.Containers[i]
		subs, err := render.SubPaths(render.ContainerInput{Pod: p, Container: c, Node: node, Refs: s, Volumes: paths})
		must(t, err)
		_, err = d.BindSubPaths(t.Context(), p, c.Name, paths, subs)
		must(t, err)
	}
	return paths
}

// version matches the name of the directory to which ..data refers.
var version = regexp.MustCompile(`\.\.\d{4}_[0-9_.]+`)

// listing returns a line for each file below dir, in the format of the recording.
func listing(t *testing.T, dir string) (lines []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		holds := ""
		switch e.Type() {
		case 0:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			holds = fmt.Sprintf(" %q", text)
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			holds = " -> " + target
		}
		line := fmt.Sprintf("%06o %d:%d .%s%s", st.Mode, st.Uid, st.Gid, strings.TrimPrefix(path, dir), holds)
		lines = append(lines, version.ReplaceAllString(line, "..TIME"))
		return nil
	}))
	return lines
}
