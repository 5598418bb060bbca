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

// recordStatic records the pods of a kubelet on its own.
func recordStatic(_ context.Context, programs, dir string) error {
	k, m := &kubelet{dir: dir, address: nodeAddress}, newMemory()
	if err := m.serve(k.socket()); err != nil {
		return err
	}
	if err := k.start(filepath.Join(programs, "kubelet")); err != nil {
		return err
	}
	defer k.stop()
	wanted := pods()
	for i := range batches {
		var batch []map[string]any
		for j := i; j < len(wanted); j += batches {
			batch = append(batch, wanted[j])
		}
		if err := ask(k, m, batch); err != nil {
			return err
		}
	}
	alone, err := files()
	if err != nil {
		return err
	}
	for _, pod := range alone {
		if err := k.moveHostPaths(pod); err != nil {
			return err
		}
		if err := ask(k, m, []map[string]any{pod}); err != nil {
			return err
		}
	}
	return write(k, m, append(wanted, alone...), "", outputStatic)
}

// batches is how many parts the pods are asked about in, one after the other:
// together they want more than a machine has. Neighbours are in different ones.
const batches = 10

// ask runs pods until the kubelet has made them, and takes them away again.
func ask(k *kubelet, m *memory, pods []map[string]any) error {
	for _, pod := range pods {
		m.expect(k.known(pod), pod)
		text, err := json.Marshal(pod)
		if err != nil {
			return err
		}
		if err := os.WriteFile(k.manifest(name(pod)), text, 0o644); err != nil {
			return err
		}
	}
	missing := m.wait(k, pods)
	if m.made() == 0 || k.ended() {
		text, _ := os.ReadFile(k.log.Name())
		return fmt.Errorf("the kubelet made nothing, or ended:\n%s", text[max(0, len(text)-4000):])
	}
	for _, pod := range missing {
		text, _ := json.Marshal(pod)
		fmt.Printf("refused by the kubelet: %s\n%s", text, k.lastWord(k.known(pod)))
	}
	for _, pod := range pods {
		if err := os.Remove(k.manifest(name(pod))); err != nil {
			return err
		}
	}
	return m.drain()
}

// lastWord is the last line in the kubelet's log with an error of a pod; "" when
// it did not admit the pod.
func (k *kubelet) lastWord(pod string) (last string) {
	text, _ := os.ReadFile(k.log.Name())
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "E") && strings.Contains(line, pod) {
			last = line
		}
	}
	return last
}

// drain waits until no sandbox is ready.
func (m *memory) drain() error {
	for deadline := time.Now().Add(5 * patience); ; time.Sleep(time.Second) {
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
			return fmt.Errorf("%d pods do not go away", ready)
		}
	}
}

func name(pod map[string]any) string {
	return pod["metadata"].(map[string]any)["name"].(string)
}

// containers counts those of a pod's manifest.
func containers(pod map[string]any) int {
	spec := pod["spec"].(map[string]any)
	list, _ := spec["containers"].([]any)
	init, _ := spec["initContainers"].([]any)
	return len(list) + len(init)
}

// wait returns the pods that the kubelet has not made whole, once it makes no
// more.
func (m *memory) wait(k *kubelet, wanted []map[string]any) []map[string]any {
	last, since := -1, time.Now()
	for {
		m.mu.Lock()
		var missing []map[string]any
		made := m.next
		for _, pod := range wanted {
			r := m.requests[k.known(pod)]
			if r == nil || len(r.Containers) < containers(pod) {
				missing = append(missing, pod)
			}
		}
		m.mu.Unlock()
		if made != last {
			last, since = made, time.Now()
		}
		if len(missing) == 0 || time.Since(since) > patience {
			return missing
		}
		time.Sleep(time.Second)
	}
}
