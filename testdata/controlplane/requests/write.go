package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// recordingLine is one line of a recording.
type recordingLine struct {
	Node       *node                  `json:"node,omitempty"`
	Pod        map[string]any         `json:"pod,omitempty"`
	Handler    string                 `json:"handler,omitempty"`
	Sandbox    *api.PodSandboxConfig  `json:"sandbox,omitempty"`
	Containers []*api.ContainerConfig `json:"containers,omitempty"`
	Pulls      []pull                 `json:"pulls,omitempty"`
	Files      map[string][]string    `json:"files,omitempty"` // by volume; see listFiles
}

// node contains the properties of the host that affect requests.
type node struct {
	Name       string `json:"name"`
	CgroupRoot string `json:"cgroupRoot"`
	ResolvConf string `json:"resolvConf"`
	Memory     int64  `json:"memory"`
	CPUs       int64  `json:"cpus"`
	// HugePages are the sizes of huge pages in the format of requests.
	HugePages []string `json:"hugePages"`
	// Reserved is the memory that pods cannot request.
	Reserved int64 `json:"reserved"`
	// Objects is the manifest of the objects that pods use, as YAML.
	Objects string `json:"objects,omitempty"`
}

func write(k *kubelet, m *memoryRuntime, pods []map[string]any, objects, output string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	memory, cpus := hostResources()
	lines := []recordingLine{{Node: &node{nodeName, "/" + cgroupRoot, resolvConf, memory, cpus, m.hugePageSizes(), reservedMemory(), objects}}}
	for _, pod := range pods {
		r := m.requests[k.podName(pod)]
		if r == nil || len(r.Containers) < containers(pod) {
			continue
		}
		// Sort the options and variables, because the kubelet sends them in random order.
		slices.Sort(r.Sandbox.GetDnsConfig().GetOptions())
		for _, c := range r.Containers {
			slices.SortFunc(c.Envs, func(a, b *api.KeyValue) int { return strings.Compare(a.Key, b.Key) })
		}
		lines = append(lines, recordingLine{Pod: pod, Handler: r.Handler, Sandbox: r.Sandbox, Containers: r.Containers, Pulls: r.Pulls, Files: r.Files})
	}
	for _, l := range lines {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		_, _ = z.Write(append(replaceValues(k, l, text), '\n'))
	}
	if err := z.Close(); err != nil {
		return err
	}
	fmt.Printf("%d pods in %d bytes, %s\n", len(lines)-1, out.Len(), output)
	return os.WriteFile(output, out.Bytes(), 0o644)
}

// hugePageSizes returns the sizes of huge pages for which the kubelet sets limits.
func (m *memoryRuntime) hugePageSizes() (sizes []string) {
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
	terminationPattern = regexp.MustCompile(`(ROOT/pods/UID/containers/[^/"]+)/[0-9a-f]{8}"`)
	seenPattern        = regexp.MustCompile(`"kubernetes.io/config.seen":"[^"]*"`)
	hostIDPattern      = regexp.MustCompile(`"host_id":[0-9]+`)
)

// replaceValues replaces the values in a line that differ between runs with placeholders.
func replaceValues(k *kubelet, l recordingLine, text []byte) []byte {
	if l.Sandbox == nil {
		return text
	}
	s := strings.NewReplacer(k.rootDir(), "ROOT", k.logsDir(), "LOGS", k.hostRoot(), "", l.Sandbox.Metadata.Uid, "UID", k.address, nodeAddress).Replace(string(text))
	s = terminationPattern.ReplaceAllString(s, `$1/TERMINATION"`)
	s = hostIDPattern.ReplaceAllString(s, `"host_id":65536`)
	return []byte(seenPattern.ReplaceAllString(s, `"kubernetes.io/config.seen":"SEEN"`))
}

// hostResources returns the memory in bytes and the number of processors of the host.
func hostResources() (memory, cpus int64) {
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
