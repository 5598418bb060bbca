package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/tools/txtar"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// stories are files that say in section steps what happens to a pod, and in
// section kubelet, which is recorded, what a kubelet then asks of its runtime,
// below each step of these that does something:
//
//	start            the pod of section pod.yaml comes
//	edit             its containers get the resources of section edit.yaml
//	exit NAME CODE   a container ends by itself
//	stop             the pod goes, with its own grace
//
// and beforehand
//
//	fail WORD        a command that begins with it fails in containers' first lives
//	take WORD TIME   it takes that long
//
// Section podd is not recorded: it has what podd asks instead, and why. The node is
// that of part api, so that both are to be recorded on one machine.
//
// A command is written once in its step and its container's life, for probes go
// on. Removals are left out: when what is over is removed is no request of a pod.
const stories = "../kubelet/*.txt"

// rest is how long nothing new may come for a step to be over. It is longer than
// anything in a story takes.
const rest = 15 * time.Second

// recordCalls plays all stories side by side.
func recordCalls(ctx context.Context, programs, dir string) error {
	files, err := filepath.Glob(stories)
	if err != nil {
		return err
	}
	r, err := register(ctx, programs, dir)
	if err != nil {
		return err
	}
	defer r.end()
	failed := make([]error, len(files))
	var all sync.WaitGroup
	for i, file := range files {
		all.Go(func() { failed[i] = r.play(ctx, file) })
	}
	all.Wait()
	for i, err := range failed {
		if err != nil {
			return fmt.Errorf("%s: %w", files[i], err)
		}
	}
	return nil
}

// play plays one story and writes down what was asked.
func (r *registered) play(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	story := txtar.Parse(text)
	pod := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "_", "-")
	var out strings.Builder
	for step := range strings.Lines(section(story, "steps")) {
		acts, err := r.step(ctx, story, pod, strings.Fields(step))
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(step), err)
		}
		if !acts {
			continue
		}
		out.WriteString(step)
		for _, line := range r.m.newCalls(pod) {
			fmt.Fprintf(&out, "\t%s\n", line)
		}
	}
	i := slices.IndexFunc(story.Files, func(f txtar.File) bool { return f.Name == "kubelet" })
	if i < 0 {
		i = len(story.Files)
		story.Files = append(story.Files, txtar.File{Name: "kubelet"})
	}
	story.Files[i].Data = []byte(out.String())
	return os.WriteFile(file, txtar.Format(story), 0o644)
}

func section(story *txtar.Archive, name string) string {
	for _, f := range story.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// step takes one, and tells whether it is one that does something.
func (r *registered) step(ctx context.Context, story *txtar.Archive, pod string, words []string) (acts bool, err error) {
	switch words[0] {
	case "fail":
		r.m.play(pod, words[1], func(p *performance) { p.fails = true })
		return false, nil
	case "take":
		d, err := time.ParseDuration(words[2])
		r.m.play(pod, words[1], func(p *performance) { p.takes = d })
		return false, err
	case "start":
		var o map[string]any
		if err := yaml.Unmarshal([]byte(section(story, "pod.yaml")), &o); err != nil {
			return false, err
		}
		o["metadata"].(map[string]any)["name"] = pod
		spec := o["spec"].(map[string]any)
		spec["automountServiceAccountToken"], spec["enableServiceLinks"] = false, false
		r.m.expect(pod, o)
		err = r.create(ctx, o)
	case "edit":
		err = r.resize(ctx, pod, section(story, "edit.yaml"))
	case "exit":
		code, _ := strconv.Atoi(words[2])
		r.m.exit(pod, words[1], int32(code))
	case "stop":
		err = r.Client.CoreV1().Pods("default").Delete(ctx, pod, metav1.DeleteOptions{})
		if errors.IsNotFound(err) {
			err = nil
		}
	default:
		err = fmt.Errorf("there is no step %q", words[0])
	}
	if err == nil {
		r.m.settle(pod)
	}
	return true, err
}

// resize gives a pod's containers the resources they have in another version.
func (r *registered) resize(ctx context.Context, pod, text string) error {
	var edited v1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &edited); err != nil {
		return err
	}
	now, err := r.Client.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for i := range edited.Spec.Containers {
		now.Spec.Containers[i].Resources = edited.Spec.Containers[i].Resources
	}
	_, err = r.Client.CoreV1().Pods("default").UpdateResize(ctx, pod, now, metav1.UpdateOptions{})
	return err
}

// settle waits until nothing new was asked of a pod for a while.
func (m *memory) settle(pod string) {
	last, since := -1, time.Now()
	for time.Since(since) < rest {
		if n := m.countCalls(pod); n != last {
			last, since = n, time.Now()
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func shown(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
