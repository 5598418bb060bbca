// Package recording reads what a kubelet of Kubernetes 1.34.4 asked of its
// runtime, for tests that compare podd with it. Module testdata/controlplane
// makes the recordings, and says what stands in them for what differs from run
// to run.
package recording

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
)

// Node is the machine that a recording was made on, as far as it shows.
type Node struct {
	Name       string   `json:"name"`
	CgroupRoot string   `json:"cgroupRoot"`
	ResolvConf string   `json:"resolvConf"`
	Memory     int64    `json:"memory"`
	CPUs       int64    `json:"cpus"`
	HugePages  []string `json:"hugePages"`
	Reserved   int64    `json:"reserved"` // of the memory, none of it for pods
	// Objects are what pods read, as a manifest; "" for none.
	Objects string `json:"objects"`
}

// Pod is one pod with what was asked for it, the messages as JSON has them.
type Pod struct {
	Manifest   json.RawMessage  `json:"pod"`
	Handler    string           `json:"handler"` // the runtime's
	Sandbox    map[string]any   `json:"sandbox"`
	Containers []map[string]any `json:"containers"`
	Pulls      []Pull           `json:"pulls"`
	// Files has a line for everything in a volume that was filled with files:
	// mode, owner, path and content.
	Files map[string][]string `json:"files"`
}

// Pull is one try to get an image.
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
