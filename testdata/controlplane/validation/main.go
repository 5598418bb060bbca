// Command validation records the results of Kubernetes' validation for many pods: valid ones,
// and each of their fields with values that are wrong, empty, at a limit, too long or in
// contradiction to another. It is deterministic: the same program writes the same bytes. See
// package controlplane for how to run it.
//
// The recording is gzipped lines of JSON; see line. A case is written as its changes to a base,
// so that a reader can reconstruct the pod.
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
	// A set of additions, numbered from 1 in the order of the recording: the changes that
	// defaulting makes to a pod, as fields with their new values, null for a removed field.
	Adds map[string]any `json:"adds,omitempty"`
	// A case: the fields to set, in this order.
	Set []change.Change `json:"set,omitempty"`
	// The result of Kubernetes for this case.
	verdict
}

// verdict is the result of Kubernetes for a pod.
type verdict struct {
	// Undecodable reports that the text cannot be decoded as a pod.
	Undecodable bool `json:"undecodable,omitempty"`
	// Errors are "type field", sorted. It is empty for a valid pod.
	Errors []string `json:"errors,omitempty"`
	// Defaults is the number of the set of additions for a valid pod.
	Defaults int `json:"defaults,omitempty"`
	// Refers is the kubelet's error if a static pod must not have one of its references.
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
		if v, _ := validate(encode(b.pod)); v.Undecodable {
			return fmt.Errorf("base %s is not a pod", b.name)
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

// judge validates a base with changes. It returns the zero line if the case is already recorded.
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
	l.verdict, adds = validate(text)
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

// encode returns JSON with sorted keys.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
