// Command validation records the results of Kubernetes' validation for many pods. Most pods differ
// from a valid pod in one field, whose value is wrong, empty, at a limit or too long, or
// contradicts another field. The program is deterministic: the same program writes the same bytes.
// See package controlplane for how to run it.
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
	// Base and Pod are the name and the pod of a base. The cases of the base follow this line.
	Base string `json:"base,omitempty"`
	Pod  any    `json:"pod,omitempty"`
	// Adds is a set of additions: the changes that defaulting makes to a pod. A key is a field.
	// Its value is the new value of the field, or null if the field is removed. The sets are
	// numbered from 1 in the order of the recording.
	Adds map[string]any `json:"adds,omitempty"`
	// Set contains the changes of a case, in the order in which they are applied to the base.
	Set []change.Change `json:"set,omitempty"`
	// verdict is the result of Kubernetes for the case.
	verdict
}

// verdict is the result of Kubernetes for a pod.
type verdict struct {
	// Undecodable reports whether the text cannot be decoded as a pod.
	Undecodable bool `json:"undecodable,omitempty"`
	// Errors contains the validation errors in the form "type field", sorted. It is empty for a
	// valid pod.
	Errors []string `json:"errors,omitempty"`
	// Defaults is the number of the set of additions for a valid pod.
	Defaults int `json:"defaults,omitempty"`
	// Refers is the kubelet's error for a pod with a reference that a static pod must not have.
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
	r, m := newRecorder(), &mutator{placeCounts: map[string]int{}}
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
	out          bytes.Buffer
	zip          *gzip.Writer
	buf          *bufio.Writer
	addNumbers   map[string]int  // number of each set of additions, by its JSON
	recordedPods map[string]bool // by the JSON of the pod
	cases        int
}

func newRecorder() *recorder {
	r := &recorder{addNumbers: map[string]int{}, recordedPods: map[string]bool{}}
	r.zip, _ = gzip.NewWriterLevel(&r.out, gzip.BestCompression)
	r.buf = bufio.NewWriter(r.zip)
	return r
}

// judge validates a base with changes and returns the line of this case. It returns the zero line
// if the same pod is already recorded.
func (r *recorder) judge(b base, set []change.Change) line {
	pod := change.Clone(b.pod)
	for _, c := range set {
		pod = c.Apply(pod)
	}
	text := encode(pod)
	if r.recordedPods[string(text)] {
		return line{}
	}
	r.recordedPods[string(text)] = true
	r.cases++
	l := line{Set: set}
	var adds map[string]any
	l.verdict, adds = validate(text)
	if adds != nil {
		key := string(encode(adds))
		if r.addNumbers[key] == 0 {
			r.addNumbers[key] = len(r.addNumbers) + 1
			r.write(line{Adds: adds})
		}
		l.Defaults = r.addNumbers[key]
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
