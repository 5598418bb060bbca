// Package recording reads the requests that a kubelet of Kubernetes has sent to its runtime, for
// tests that compare podd with the kubelet. The module testdata/controlplane creates the
// recordings, and documents the placeholders for values that differ between runs.
package recording

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
)

// A Node contains the properties of the recorded host that affect the kubelet's requests.
type Node struct {
	Name           string   `json:"name"`
	CgroupRoot     string   `json:"cgroupRoot"`
	ResolvConf     string   `json:"resolvConf"`
	Memory         int64    `json:"memory"`
	CPUs           int64    `json:"cpus"`
	HugePages      []string `json:"hugePages"`
	ReservedMemory int64    `json:"reserved"` // memory that pods cannot use
	// Objects is a manifest of the objects that pods refer to; "" if there are none.
	Objects string `json:"objects"`
}

// A Pod contains the manifest of a pod and the CRI messages that the kubelet sent for it, as JSON.
type Pod struct {
	Manifest   json.RawMessage  `json:"pod"`
	Handler    string           `json:"handler"` // name of the runtime handler
	Sandbox    map[string]any   `json:"sandbox"`
	Containers []map[string]any `json:"containers"`
	Pulls      []Pull           `json:"pulls"`
	// Files contains, by volume name, one line for each file and directory of a volume that the
	// kubelet filled: mode, owner, path and content.
	Files map[string][]string `json:"files"`
}

// A Pull is one attempt to pull an image.
type Pull struct {
	Image string         `json:"image"`
	Auth  map[string]any `json:"auth"`
}

// Read reads a recording.
func Read(t testing.TB, file string) (n Node, pods []Pod) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bufio.NewReader(z)); d.More(); {
		var l struct {
			Node *Node `json:"node"`
			Pod
		}
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.Node != nil {
			n = *l.Node
			continue
		}
		pods = append(pods, l.Pod)
	}
	return n, pods
}
