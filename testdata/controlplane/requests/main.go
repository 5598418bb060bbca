// Program requests records what a real kubelet of Kubernetes asks of its
// container runtime for many pods: combinations of fields, and the manifests of
// podd's own tests. It runs the kubelet alone, with manifests in a directory and
// a runtime in memory, so that it needs root and starts nothing.
// See package controlplane for how to run it.
//
// The recording is gzipped lines of JSON: first the node, then a pod each, with
// the configs of its sandbox and containers. What differs from run to run is
// replaced: ROOT is the kubelet's directory, LOGS that of logs, UID the pod's,
// and TERMINATION the name of a file for a termination message.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const output = "../render/kubelet.jsonl.gz"

// patience is how long the kubelet may do nothing before the rest of the pods
// counts as refused by it.
const patience = 20 * time.Second

func main() {
	program := flag.String("kubelet", "", "the `file` of a kubelet; built when not given")
	flag.Parse()
	if err := record(*program); err != nil {
		fmt.Fprintln(os.Stderr, "recording requests:", err)
		os.Exit(1)
	}
}

func record(program string) error {
	dir, err := os.MkdirTemp("", "requests")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if program == "" {
		program = filepath.Join(dir, "kubelet")
		build := exec.Command("go", "build", "-o", program, "k8s.io/kubernetes/cmd/kubelet")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building the kubelet: %w\n%s", err, out)
		}
	}
	k, m := &kubelet{dir: dir}, newMemory()
	if err := m.serve(k.socket()); err != nil {
		return err
	}
	if err := k.start(program); err != nil {
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
	return write(k, m, append(wanted, alone...))
}

// batches is how many parts the pods are asked about in, one after the other:
// together they want more than a machine has. Neighbours are in different ones.
const batches = 10

// ask runs pods until the kubelet has made them, and takes them away again.
func ask(k *kubelet, m *memory, pods []map[string]any) error {
	for _, pod := range pods {
		m.expect(pod)
		text, err := json.Marshal(pod)
		if err != nil {
			return err
		}
		if err := os.WriteFile(k.manifest(name(pod)), text, 0o644); err != nil {
			return err
		}
	}
	missing := m.wait(pods)
	if m.made() == 0 {
		text, _ := os.ReadFile(k.log.Name())
		return fmt.Errorf("the kubelet made nothing:\n%s", text[max(0, len(text)-4000):])
	}
	for _, pod := range missing {
		text, _ := json.Marshal(pod)
		fmt.Printf("refused by the kubelet: %s\n%s", text, k.lastWord(name(pod)))
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
		if strings.HasPrefix(line, "E") && strings.Contains(line, pod+"-"+nodeName) {
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
func (m *memory) wait(wanted []map[string]any) []map[string]any {
	last, since := -1, time.Now()
	for {
		m.mu.Lock()
		var missing []map[string]any
		made := m.next
		for _, pod := range wanted {
			r := m.requests[name(pod)+"-"+nodeName]
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

// recorded is one line.
type recorded struct {
	Node       *node                  `json:"node,omitempty"`
	Pod        map[string]any         `json:"pod,omitempty"`
	Sandbox    *api.PodSandboxConfig  `json:"sandbox,omitempty"`
	Containers []*api.ContainerConfig `json:"containers,omitempty"`
}

// node is what of the machine shows in requests.
type node struct {
	Name       string `json:"name"`
	CgroupRoot string `json:"cgroupRoot"`
	ResolvConf string `json:"resolvConf"`
	Memory     int64  `json:"memory"`
	CPUs       int64  `json:"cpus"`
	// HugePages are the sizes of them, as requests have them.
	HugePages []string `json:"hugePages"`
}

func write(k *kubelet, m *memory, wanted []map[string]any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	memory, cpus := machine()
	lines := []recorded{{Node: &node{nodeName, "/" + cgroupRoot, resolvConf, memory, cpus, m.hugePages()}}}
	for _, pod := range wanted {
		r := m.requests[name(pod)+"-"+nodeName]
		if r == nil || len(r.Containers) < containers(pod) {
			continue
		}
		// The kubelet sends these in the order of a map.
		slices.Sort(r.Sandbox.GetDnsConfig().GetOptions())
		for _, c := range r.Containers {
			slices.SortFunc(c.Envs, func(a, b *api.KeyValue) int { return strings.Compare(a.Key, b.Key) })
		}
		lines = append(lines, recorded{Pod: pod, Sandbox: r.Sandbox, Containers: r.Containers})
	}
	for _, l := range lines {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		_, _ = z.Write(append(neutral(k, l, text), '\n'))
	}
	if err := z.Close(); err != nil {
		return err
	}
	fmt.Printf("%d pods in %d bytes, %s\n", len(lines)-1, out.Len(), output)
	return os.WriteFile(output, out.Bytes(), 0o644)
}

// hugePages are the sizes that the kubelet limits.
func (m *memory) hugePages() (sizes []string) {
	for _, r := range m.requests {
		for _, c := range r.Containers {
			for _, l := range c.GetLinux().GetResources().GetHugepageLimits() {
				sizes = append(sizes, l.PageSize)
			}
			return sizes
		}
	}
	return nil
}

var (
	termination = regexp.MustCompile(`(ROOT/pods/UID/containers/[^/"]+)/[0-9a-f]{8}"`)
	seen        = regexp.MustCompile(`"kubernetes.io/config.seen":"[^"]*"`)
)

// neutral takes out of a line what differs from run to run.
func neutral(k *kubelet, l recorded, text []byte) []byte {
	if l.Sandbox == nil {
		return text
	}
	s := strings.NewReplacer(k.root(), "ROOT", k.logs(), "LOGS", k.machineRoot(), "", l.Sandbox.Metadata.Uid, "UID").Replace(string(text))
	s = termination.ReplaceAllString(s, `$1/TERMINATION"`)
	return []byte(seen.ReplaceAllString(s, `"kubernetes.io/config.seen":"SEEN"`))
}

// machine tells how much memory and how many processors there are.
func machine() (memory, cpus int64) {
	text, _ := os.ReadFile("/proc/meminfo")
	_, _ = fmt.Sscanf(string(text), "MemTotal: %d kB", &memory)
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if slices.Contains(strings.Fields(line), "processor") {
			cpus++
		}
	}
	return memory << 10, cpus
}
