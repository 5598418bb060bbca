package main

import (
	"fmt"
	"path/filepath"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/runtime/runtimetest/stack"
)

// containerName is the name of the only container of every pod.
const containerName = "main"

// waitScript is the end of the script of every pod. It waits for SIGTERM.
const waitScript = "sleep 100000 & wait"

// manifestTemplate is the manifest of a pod. The process of the pod first writes the pod's name to the
// FIFO of the bench. It exits on SIGTERM.
const manifestTemplate = `apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
spec:
  containers:
  - name: ` + containerName + `
    image: ` + stack.BusyboxImage + `
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "trap 'exit 0' TERM; echo %[1]s >/bench/%[2]s; ` + waitScript + `"]
    volumeMounts:
    - {name: bench, mountPath: /bench}
%[4]s  volumes:
  - name: bench
    hostPath: {path: %[3]s, type: Directory}
`

// probedEverySecond contains the fields of a container with an exec probe every second.
const probedEverySecond = `    livenessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
`

// pod is a pod that podd or a bareRunner starts.
type pod struct {
	name string
	text string
}

// newPods returns n pods with new names.
func (b *bench) newPods(n int) []pod { return b.newPodsWithFields(n, "") }

// newPodsWithFields returns n pods with new names. fields contains lines with further fields of their
// containers, such as probedEverySecond.
func (b *bench) newPodsWithFields(n int, fields string) []pod {
	pods := make([]pod, n)
	for i := range pods {
		b.podsCreated++
		name := fmt.Sprintf("p%d", b.podsCreated)
		dir, fifo := filepath.Split(b.starts.path)
		pods[i] = pod{name, fmt.Sprintf(manifestTemplate, name, fifo, filepath.Clean(dir), fields)}
	}
	return pods
}

// decode decodes the manifest for a node, as podd does.
func (p pod) decode(node string) (*manifest.Pod, error) {
	f := decode.File([]byte(p.text), decode.Options{Kind: manifest.KindFile, Path: p.name + ".yaml", NodeName: node})
	if len(f.Problems) > 0 || len(f.Pods) != 1 {
		return nil, fmt.Errorf("reading the manifest of %s: got %d pods and the problems %v, want one pod and no problems", p.name, len(f.Pods), f.Problems)
	}
	return f.Pods[0], nil
}

func podNames(pods []pod) []string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = pods[i].name
	}
	return names
}
