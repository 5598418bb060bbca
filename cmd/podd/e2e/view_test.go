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

// find returns the pod of a manifest, or nil. The parameter name is the name in the manifest,
// without the node name.
func (d *daemon) find(v *server.View, name string) *server.PodView {
	i := slices.IndexFunc(v.Pods, func(p *server.PodView) bool { return p.Pod.Name == d.podName(name) })
	if i < 0 {
		return nil
	}
	return v.Pods[i]
}

// podName returns the name of the pod of a manifest: the name in the manifest, with the node name
// appended.
func (d *daemon) podName(name string) string { return name + "-" + d.host }

// untilPod waits until check returns nil for the pod, and returns the pod. The parameter what describes
// the condition; the failure message contains it after the name of the pod.
func (d *daemon) untilPod(what, name string, check func(*server.PodView) error) *server.PodView {
	d.t.Helper()
	v := d.until(name+" "+what, func(v *server.View) error {
		p := d.find(v, name)
		if p == nil {
			return fmt.Errorf("got no pod %s, want one", name)
		}
		return check(p)
	})
	return d.find(v, name)
}

// usesFile returns a check that podd uses the current content of a pod's file.
func (d *daemon) usesFile(name string) func(*server.View) error {
	d.t.Helper()
	text, err := os.ReadFile(d.manifestFile(name))
	if err != nil {
		d.t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return func(v *server.View) error {
		i := slices.IndexFunc(v.Files, func(f server.FileView) bool { return f.Path == d.manifestFile(name) })
		if i < 0 || v.Files[i].Digest != "sha256:"+hex.EncodeToString(sum[:]) {
			return fmt.Errorf("got the files %+v, want the current content of %s in use", v.Files, d.manifestFile(name))
		}
		return nil
	}
}

// untilStored waits until podd has stored the file's content, which happens shortly after podd has
// applied it. If podd is killed before it has stored the content, and the file is invalid when podd
// starts again, podd uses the earlier content.
func (d *daemon) untilStored(name string) {
	d.t.Helper()
	text, err := os.ReadFile(d.manifestFile(name))
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
		return errors.Join(err, fmt.Errorf("got indexes of the stored content %q, want the digest %s in one of them", indexes, digest))
	})
}

// untilApplied waits until podd uses the current content of the file and the pod is ready in
// that version. It returns the pod.
func (d *daemon) untilApplied(name string) *server.PodView {
	d.t.Helper()
	taken := d.usesFile(name)
	v := d.until(name+" is ready in its current version", func(v *server.View) error {
		if err := taken(v); err != nil {
			return err
		}
		if p := d.find(v, name); p == nil || !p.Ready || !p.IsCurrent {
			return fmt.Errorf("got pod %+v, want it ready in its current version", p)
		}
		return nil
	})
	return d.find(v, name)
}

// untilGone waits until podd has listed the pods and shows no pod with one of these names.
func (d *daemon) untilGone(names ...string) {
	d.t.Helper()
	d.until("podd shows no pod "+strings.Join(names, ", "), func(v *server.View) error {
		if v.Starting {
			return errors.New("podd has not listed the pods yet")
		}
		for _, name := range names {
			if d.find(v, name) != nil {
				return fmt.Errorf("got pod %s, want none", name)
			}
		}
		return nil
	})
}

// untilProblem waits until podd shows a problem of a pod or a file and the text of the problem
// contains all parts. It returns the text.
func (d *daemon) untilProblem(parts ...string) string {
	d.t.Helper()
	var found string
	d.until(fmt.Sprintf("podd reports a problem that contains all of %q", parts), func(v *server.View) error {
		all := problems(v)
		for _, text := range all {
			if containsAll(text, parts) {
				found = text
				return nil
			}
		}
		return fmt.Errorf("got problems %q, want one that contains all of %q", all, parts)
	})
	return found
}

// problems returns the texts of all problems that podd shows.
func problems(v *server.View) []string {
	var all []string
	for _, p := range v.Problems {
		all = append(all, p.String())
	}
	for _, p := range v.Pods {
		if p.NeedsUser {
			all = append(all, p.Pod.Name+": "+p.Why)
		}
		for _, s := range p.Decisions {
			if s.NeedsUser {
				all = append(all, p.Pod.Name+": "+s.Container+": "+s.Reason+": "+s.Why)
			}
		}
	}
	return all
}

// containsAll reports whether text contains all parts.
func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// restarts returns the restart count that podd shows for a container, or -1 if there is no such container.
func restarts(p *server.PodView, container string) int {
	for _, c := range slices.Concat(p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses) {
		if c.Name == container {
			return int(c.RestartCount)
		}
	}
	return -1
}

// inPhase returns a check that a pod has the phase.
func inPhase(phase v1.PodPhase) func(*server.PodView) error {
	return func(p *server.PodView) error {
		if got := p.Pod.Status.Phase; got != phase {
			return fmt.Errorf("got phase %s, want %s", got, phase)
		}
		return nil
	}
}
