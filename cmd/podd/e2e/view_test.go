//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// find is the pod of a name without the node's; nil when there is none.
func (d *daemon) find(v *server.View, name string) *server.PodView {
	i := slices.IndexFunc(v.Pods, func(p *server.PodView) bool { return p.Pod.Name == d.full(name) })
	if i < 0 {
		return nil
	}
	return v.Pods[i]
}

// full is the whole name of a pod from a file.
func (d *daemon) full(name string) string { return name + "-" + d.host }

// untilPod waits until is returns nil for the pod.
func (d *daemon) untilPod(what, name string, is func(*server.PodView) error) *server.PodView {
	d.t.Helper()
	v := d.until(name+" "+what, func(v *server.View) error {
		p := d.find(v, name)
		if p == nil {
			return fmt.Errorf("there is no pod %s", name)
		}
		return is(p)
	})
	return d.find(v, name)
}

// taken tells whether the content of a pod's file is what podd wants.
func (d *daemon) taken(name string) func(*server.View) error {
	d.t.Helper()
	text, err := os.ReadFile(d.file(name))
	if err != nil {
		d.t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return func(v *server.View) error {
		i := slices.IndexFunc(v.Files, func(f server.FileView) bool { return f.Path == d.file(name) })
		if i < 0 || v.Files[i].Digest != "sha256:"+hex.EncodeToString(sum[:]) {
			return fmt.Errorf("the file's content is not taken")
		}
		return nil
	}
}

// untilStored waits until podd has stored the file's content, which it does shortly after it
// has used it. A podd that is killed before that runs the earlier content if the file is
// broken when it starts again.
func (d *daemon) untilStored(name string) {
	d.t.Helper()
	text, err := os.ReadFile(d.file(name))
	if err != nil {
		d.t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	digest := []byte("sha256:" + hex.EncodeToString(sum[:]))
	d.eventually("the content of "+name+" is stored", func() error {
		indexes, err := filepath.Glob(filepath.Join(d.root(), "sources", "*", "index"))
		for _, index := range indexes {
			if data, err := os.ReadFile(index); err == nil && bytes.Contains(data, digest) {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("it is in none of %q", indexes))
	})
}

// untilApplied waits until the file's content is wanted, and the pod of it
// does what it should.
func (d *daemon) untilApplied(name string) *server.PodView {
	d.t.Helper()
	taken := d.taken(name)
	v := d.until(name+" is applied", func(v *server.View) error {
		if err := taken(v); err != nil {
			return err
		}
		if p := d.find(v, name); p == nil || !p.Ready || !p.Current {
			return fmt.Errorf("the pod is not ready")
		}
		return nil
	})
	return d.find(v, name)
}

// untilGone waits until podd has seen that no pod of the name is there.
func (d *daemon) untilGone(names ...string) {
	d.t.Helper()
	d.until(strings.Join(names, ", ")+" is gone", func(v *server.View) error {
		if v.Starting {
			return errors.New("podd has not looked yet")
		}
		for _, name := range names {
			if d.find(v, name) != nil {
				return fmt.Errorf("%s is there", name)
			}
		}
		return nil
	})
}

// untilProblem waits until podd shows a problem, of the pod or of a file,
// whose text has all parts in it; it returns the text.
func (d *daemon) untilProblem(parts ...string) string {
	d.t.Helper()
	var found string
	d.until(fmt.Sprintf("a problem says %q", parts), func(v *server.View) error {
		all := problems(v)
		for _, text := range all {
			if hasAll(text, parts) {
				found = text
				return nil
			}
		}
		return fmt.Errorf("the problems are %q", all)
	})
	return found
}

// problems are the texts of all that podd wants mended.
func problems(v *server.View) []string {
	var all []string
	for _, p := range v.Problems {
		all = append(all, p.String())
	}
	for _, p := range v.Pods {
		if p.Problem {
			all = append(all, p.Pod.Name+": "+p.Why)
		}
		for _, s := range p.Steps {
			if s.Problem {
				all = append(all, p.Pod.Name+": "+s.Container+": "+s.Reason+": "+s.Why)
			}
		}
	}
	return all
}

func hasAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// restarts is the restart count that podd shows for a container.
func restarts(p *server.PodView, container string) int {
	for _, c := range slices.Concat(p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses) {
		if c.Name == container {
			return int(c.RestartCount)
		}
	}
	return -1
}

// inPhase tells whether a pod's status has the phase.
func inPhase(phase v1.PodPhase) func(*server.PodView) error {
	return func(p *server.PodView) error {
		if got := p.Pod.Status.Phase; got != phase {
			return fmt.Errorf("its phase is %s", got)
		}
		return nil
	}
}
