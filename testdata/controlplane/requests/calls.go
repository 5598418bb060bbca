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

// scenarios matches the files of the scenarios, which have the following sections. Section steps
// contains the steps for one pod. Section kubelet is recorded: below each step it contains the
// requests that the kubelet then sends to its runtime. The steps are:
//
//	start            create the pod in section pod.yaml
//	edit             set the resources of its containers to those in section edit.yaml
//	exit NAME CODE   a container exits
//	stop             delete the pod with its own grace period
//
// The following steps prepare a scenario, precede all others and are not recorded:
//
//	fail WORD        a command that begins with WORD fails in the first attempt of a container
//	take WORD TIME   the command takes this time
//
// Section podd is not recorded: it contains the requests of podd if they differ, and the
// reason. The node is the same as in part api, so both parts must be recorded on the same host.
//
// A command is written once per step and attempt of its container, because probes repeat.
// Removals are omitted, because the time of the removal of exited containers does not depend on
// the pod.
const scenarios = "../kubelet/*.txt"

// settleTime is the time without a new request after which a step is complete. It is longer than
// any action in a scenario.
const settleTime = 15 * time.Second

// recordCalls runs all scenarios concurrently.
func recordCalls(ctx context.Context, programs, dir string) error {
	files, err := filepath.Glob(scenarios)
	if err != nil {
		return err
	}
	r, err := register(ctx, programs, dir)
	if err != nil {
		return err
	}
	defer r.stopAll()
	errs := make([]error, len(files))
	var group sync.WaitGroup
	for i, file := range files {
		group.Go(func() { errs[i] = r.record(ctx, file) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", files[i], err)
		}
	}
	return nil
}

// record runs one scenario and writes the recorded requests to its file.
func (r *registeredKubelet) record(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	scenario := txtar.Parse(text)
	pod := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "_", "-")
	var out strings.Builder
	for step := range strings.Lines(section(scenario, "steps")) {
		isRecorded, err := r.step(ctx, scenario, pod, strings.Fields(step))
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(step), err)
		}
		if !isRecorded {
			continue
		}
		out.WriteString(step)
		for _, line := range r.m.newCalls(pod) {
			fmt.Fprintf(&out, "\t%s\n", line)
		}
	}
	i := slices.IndexFunc(scenario.Files, func(f txtar.File) bool { return f.Name == "kubelet" })
	if i < 0 {
		i = len(scenario.Files)
		scenario.Files = append(scenario.Files, txtar.File{Name: "kubelet"})
	}
	scenario.Files[i].Data = []byte(out.String())
	return os.WriteFile(file, txtar.Format(scenario), 0o644)
}

func section(scenario *txtar.Archive, name string) string {
	for _, f := range scenario.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// step executes one step. isRecorded is false for a step after which no requests are recorded.
func (r *registeredKubelet) step(ctx context.Context, scenario *txtar.Archive, pod string, words []string) (isRecorded bool, err error) {
	switch words[0] {
	case "fail":
		r.m.setCommand(pod, words[1], func(p *behavior) { p.failsOnce = true })
		return false, nil
	case "take":
		d, err := time.ParseDuration(words[2])
		r.m.setCommand(pod, words[1], func(p *behavior) { p.duration = d })
		return false, err
	case "start":
		var o map[string]any
		if err := yaml.Unmarshal([]byte(section(scenario, "pod.yaml")), &o); err != nil {
			return false, err
		}
		o["metadata"].(map[string]any)["name"] = pod
		spec := o["spec"].(map[string]any)
		spec["automountServiceAccountToken"], spec["enableServiceLinks"] = false, false
		r.m.expect(pod, o)
		err = r.create(ctx, o)
	case "edit":
		err = r.resize(ctx, pod, section(scenario, "edit.yaml"))
	case "exit":
		code, _ := strconv.Atoi(words[2])
		r.m.exit(pod, words[1], int32(code))
	case "stop":
		err = r.Client.CoreV1().Pods("default").Delete(ctx, pod, metav1.DeleteOptions{})
		if errors.IsNotFound(err) {
			err = nil
		}
	default:
		err = fmt.Errorf("unknown step %q", words[0])
	}
	if err == nil {
		r.m.settle(pod)
	}
	return true, err
}

// resize sets the resources of a pod's containers to those in the manifest text.
func (r *registeredKubelet) resize(ctx context.Context, pod, text string) error {
	var editedPod v1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &editedPod); err != nil {
		return err
	}
	currentPod, err := r.Client.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for i := range editedPod.Spec.Containers {
		currentPod.Spec.Containers[i].Resources = editedPod.Spec.Containers[i].Resources
	}
	_, err = r.Client.CoreV1().Pods("default").UpdateResize(ctx, pod, currentPod, metav1.UpdateOptions{})
	return err
}

// settle waits until the kubelet has sent no new request for a pod for settleTime.
func (m *memoryRuntime) settle(pod string) {
	lastCount, changedAt := -1, time.Now()
	for time.Since(changedAt) < settleTime {
		if n := m.countCalls(pod); n != lastCount {
			lastCount, changedAt = n, time.Now()
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func toJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
