package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// recordStatic records the pods of a standalone kubelet.
func recordStatic(_ context.Context, programs, dir string) error {
	k, m := &kubelet{dir: dir, address: nodeAddress}, newMemoryRuntime()
	if err := m.serve(k.socket()); err != nil {
		return err
	}
	if err := k.start(filepath.Join(programs, "kubelet")); err != nil {
		return err
	}
	defer k.stop()
	podList := pods()
	for i := range batches {
		var batch []map[string]any
		for j := i; j < len(podList); j += batches {
			batch = append(batch, podList[j])
		}
		if err := runPods(k, m, batch); err != nil {
			return err
		}
	}
	filePods, err := podsFromFiles()
	if err != nil {
		return err
	}
	for _, pod := range filePods {
		if err := k.moveHostPaths(pod); err != nil {
			return err
		}
		if err := runPods(k, m, []map[string]any{pod}); err != nil {
			return err
		}
	}
	return write(k, m, append(podList, filePods...), "", outputStatic)
}

// batches is the number of groups of pods. The groups run one after the other, because all pods
// together request more resources than the host has. Similar pods are in different groups.
const batches = 10

// runPods runs pods until the kubelet has created them, and removes them.
func runPods(k *kubelet, m *memoryRuntime, pods []map[string]any) error {
	for _, pod := range pods {
		m.expect(k.podName(pod), pod)
		text, err := json.Marshal(pod)
		if err != nil {
			return err
		}
		if err := os.WriteFile(k.manifestPath(name(pod)), text, 0o644); err != nil {
			return err
		}
	}
	missing := m.wait(k, pods)
	if m.createdCount() == 0 || k.hasExited() {
		text, _ := os.ReadFile(k.log.Name())
		return fmt.Errorf("the kubelet has created nothing or has exited:\n%s", text[max(0, len(text)-4000):])
	}
	for _, pod := range missing {
		text, _ := json.Marshal(pod)
		fmt.Printf("rejected by the kubelet: %s\n%s", text, k.lastError(k.podName(pod)))
	}
	for _, pod := range pods {
		if err := os.Remove(k.manifestPath(name(pod))); err != nil {
			return err
		}
	}
	return m.drain()
}

// lastError returns the last line with an error of a pod in the kubelet's log. It returns "" if
// the kubelet did not admit the pod.
func (k *kubelet) lastError(pod string) (last string) {
	text, _ := os.ReadFile(k.log.Name())
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "E") && strings.Contains(line, pod) {
			last = line
		}
	}
	return last
}

// drain waits until no sandbox is ready.
func (m *memoryRuntime) drain() error {
	for deadline := time.Now().Add(5 * idleTimeout); ; time.Sleep(time.Second) {
		m.mu.Lock()
		ready := 0
		for _, s := range m.sandboxes {
			if s.State == api.PodSandboxState_SANDBOX_READY {
				ready++
			}
		}
		m.mu.Unlock()
		if ready == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("got %d ready sandboxes, want none", ready)
		}
	}
}

func name(pod map[string]any) string {
	return pod["metadata"].(map[string]any)["name"].(string)
}

// containers returns the number of containers in a pod's manifest.
func containers(pod map[string]any) int {
	spec := pod["spec"].(map[string]any)
	list, _ := spec["containers"].([]any)
	init, _ := spec["initContainers"].([]any)
	return len(list) + len(init)
}

// wait waits until the kubelet has created all pods or is idle. It returns the pods that the
// kubelet has not created completely.
func (m *memoryRuntime) wait(k *kubelet, pods []map[string]any) []map[string]any {
	lastCount, changedAt := -1, time.Now()
	for {
		m.mu.Lock()
		var missing []map[string]any
		createdCount := m.objectCount
		for _, pod := range pods {
			r := m.requests[k.podName(pod)]
			if r == nil || len(r.Containers) < containers(pod) {
				missing = append(missing, pod)
			}
		}
		m.mu.Unlock()
		if createdCount != lastCount {
			lastCount, changedAt = createdCount, time.Now()
		}
		if len(missing) == 0 || time.Since(changedAt) > idleTimeout {
			return missing
		}
		time.Sleep(time.Second)
	}
}
