// Program validation records what Kubernetes makes of many pods: some that are
// valid, and each of their fields set to what is wrong, empty, at an edge, too
// long or in contradiction to another. It has no randomness, so that the same
// program writes the same bytes. See package controlplane for how to run it.
//
// The recording is gzipped lines of JSON, see line. A case is written as the
// change that it is to a base, so that a reader can rebuild the pod.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"

	"podd/testdata/controlplane/change"
)

const output = "../manifests/kubernetes.jsonl.gz"

// line is one line of the recording: a base, a set of additions, or a case.
type line struct {
	// A base: its name and its pod. Cases of a base follow it.
	Base string `json:"base,omitempty"`
	Pod  any    `json:"pod,omitempty"`
	// A set of additions, numbered from 1 in the order of the recording: what
	// defaulting makes of a pod, as fields that differ and their values, null for
	// one that vanishes.
	Adds map[string]any `json:"adds,omitempty"`
	// A case: the fields to set, one after the other.
	Set []change.Change `json:"set,omitempty"`
	// What Kubernetes said of it.
	verdict
}

// verdict is what Kubernetes says of a pod.
type verdict struct {
	// Undecodable says that the text was no pod at all.
	Undecodable bool `json:"undecodable,omitempty"`
	// Errors are "type field", sorted; none for a valid pod.
	Errors []string `json:"errors,omitempty"`
	// Defaults is the number of the set of additions of a valid pod.
	Defaults int `json:"defaults,omitempty"`
	// Refers is what the kubelet says that a static pod may not refer to.
	Refers string `json:"refers,omitempty"`
}

func main() {
	if err := record(); err != nil {
		fmt.Fprintln(os.Stderr, "recording validation:", err)
		os.Exit(1)
	}
}

func record() error {
	bases, err := readBases()
	if err != nil {
		return err
	}
	r, m := newRecorder(), &mutator{seen: map[string]int{}}
	for _, b := range bases {
		r.write(line{Base: b.name, Pod: b.pod})
		if v, _ := ask(encode(b.pod)); v.Undecodable {
			return fmt.Errorf("base %s is no pod", b.name)
		}
		r.write(r.judge(b, nil))
		for _, c := range m.cases(b) {
			r.write(r.judge(b, c))
		}
		fmt.Printf("%-24s %6d cases so far\n", b.name, r.cases)
	}
	if err := r.close(); err != nil {
		return err
	}
	fmt.Printf("%d cases in %d bytes, %s\n", r.cases, r.out.Len(), output)
	return os.WriteFile(output, r.out.Bytes(), 0o644)
}

// recorder writes each case once.
type recorder struct {
	out   bytes.Buffer
	zip   *gzip.Writer
	buf   *bufio.Writer
	adds  map[string]int
	seen  map[string]bool
	cases int
}

func newRecorder() *recorder {
	r := &recorder{adds: map[string]int{}, seen: map[string]bool{}}
	r.zip, _ = gzip.NewWriterLevel(&r.out, gzip.BestCompression)
	r.buf = bufio.NewWriter(r.zip)
	return r
}

// judge asks Kubernetes about a base with changes; the zero line when the case
// is known.
func (r *recorder) judge(b base, set []change.Change) line {
	pod := change.Clone(b.pod)
	for _, c := range set {
		pod = c.Apply(pod)
	}
	text := encode(pod)
	if r.seen[string(text)] {
		return line{}
	}
	r.seen[string(text)] = true
	r.cases++
	l := line{Set: set}
	var adds map[string]any
	l.verdict, adds = ask(text)
	if adds != nil {
		key := string(encode(adds))
		if r.adds[key] == 0 {
			r.adds[key] = len(r.adds) + 1
			r.write(line{Adds: adds})
		}
		l.Defaults = r.adds[key]
	}
	return l
}

func (r *recorder) write(l line) {
	if l.Base == "" && l.Adds == nil && l.Errors == nil && l.Defaults == 0 && !l.Undecodable {
		return
	}
	r.buf.Write(encode(l))
	r.buf.WriteByte('\n')
}

func (r *recorder) close() error {
	if err := r.buf.Flush(); err != nil {
		return err
	}
	return r.zip.Close()
}

// encode is JSON with sorted keys.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
