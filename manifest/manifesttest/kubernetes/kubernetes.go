// Package kubernetes reads the recorded results of decoding, defaulting and validating pods
// with Kubernetes. Module testdata/controlplane records them.
package kubernetes

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A Case is a pod with the results of its decoding, defaulting and validation by Kubernetes.
type Case struct {
	Base string `json:"base"`
	Pod  any    `json:"pod"`
	Set  []struct {
		Path   []string `json:"path"`
		Value  any      `json:"value"`
		Remove bool     `json:"remove"`
	} `json:"set"`
	Undecodable bool           `json:"undecodable"`
	Errors      []string       `json:"errors"` // each as "<type of the error> <field>"
	Defaults    int            `json:"defaults"`
	Adds        map[string]any `json:"adds"`
	Refers      string         `json:"refers"`
}

func (c *Case) String() string {
	text := c.Base
	for _, s := range c.Set {
		value, _ := json.Marshal(s.Value)
		text += fmt.Sprintf(" %s=%.120s", strings.Join(s.Path, "."), value)
		if s.Remove {
			text += " (removed)"
		}
	}
	return text
}

// Text returns the pod as JSON.
func (c *Case) Text() []byte {
	pod := deepCopy(c.Pod)
	for _, s := range c.Set {
		pod = setField(pod, s.Path, s.Value, s.Remove)
	}
	data, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	return data
}

// deepCopy returns a deep copy of a decoded JSON value.
func deepCopy(tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		members := make(map[string]any, len(tree))
		for key := range tree {
			members[key] = deepCopy(tree[key])
		}
		return members
	case []any:
		elements := make([]any, len(tree))
		for i := range tree {
			elements[i] = deepCopy(tree[i])
		}
		return elements
	}
	return tree
}

// setField sets or removes one field of a decoded JSON value and returns the result. An index that
// is equal to the length of a list appends an element.
func setField(tree any, path []string, value any, remove bool) any {
	if len(path) == 0 {
		return deepCopy(value)
	}
	if l, ok := tree.([]any); ok {
		i, _ := strconv.Atoi(path[0])
		if remove && len(path) == 1 {
			return append(l[:i], l[i+1:]...)
		}
		if i == len(l) {
			l = append(l, nil)
		}
		l[i] = setField(l[i], path[1:], value, remove)
		return l
	}
	m, ok := tree.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	if remove && len(path) == 1 {
		delete(m, path[0])
	} else {
		m[path[0]] = setField(m[path[0]], path[1:], value, remove)
	}
	return m
}

// Read calls visit with every case. The directory of the test's package must be two levels below
// the root of the module.
func Read(t *testing.T, visit func(Case)) {
	t.Helper()
	f, err := os.Open("../../testdata/manifests/kubernetes.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(z)
	var base Case
	adds := []map[string]any{nil}
	for decoder := json.NewDecoder(lines); decoder.More(); {
		var c Case
		if err := decoder.Decode(&c); err != nil {
			t.Fatal(err)
		}
		switch {
		case c.Base != "":
			base = c
		case c.Adds != nil:
			adds = append(adds, c.Adds)
		default:
			c.Base, c.Pod, c.Adds = base.Base, base.Pod, adds[c.Defaults]
			visit(c)
		}
	}
}
