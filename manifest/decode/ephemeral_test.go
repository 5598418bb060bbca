package decode

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"podd/manifest"
	"podd/manifest/validate"
)

const debugged = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  initContainers: [{name: setup, image: setup:1}]
  containers: [{name: main, image: web:1}]
  volumes: [{name: data, emptyDir: {}}]
`

func ephemeral(t *testing.T, text string) []v1.EphemeralContainer {
	t.Helper()
	var list []v1.EphemeralContainer
	if err := yaml.UnmarshalStrict([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func debuggedPod(t *testing.T) *manifest.Pod {
	t.Helper()
	f := File([]byte(debugged), Options{NodeName: "n1"})
	if len(f.Pods) != 1 {
		t.Fatal(f.Problems)
	}
	return f.Pods[0]
}

func TestAddEphemeral(t *testing.T) {
	p := debuggedPod(t)
	one, errs := AddEphemeral(p, ephemeral(t, `[{name: d, image: busybox, targetContainerName: main, stdin: true, tty: true, volumeMounts: [{name: data, mountPath: /d}]}]`))
	if len(errs) > 0 || len(p.Object.Spec.EphemeralContainers) > 0 {
		t.Fatal(errs, p.Object.Spec.EphemeralContainers)
	}
	got := one.Object.Spec.EphemeralContainers[0]
	if got.ImagePullPolicy != v1.PullAlways || got.TerminationMessagePath != "/dev/termination-log" || one.Hash != p.Hash || one.UID != p.UID || one.PodSize() != p.PodSize() {
		t.Errorf("AddEphemeral: got %+v, want the container with defaults and unchanged hashes", one)
	}
	two, errs := AddEphemeral(one, ephemeral(t, `[{name: e, image: busybox}, {name: d, image: busybox, targetContainerName: main, stdin: true, tty: true, volumeMounts: [{name: data, mountPath: /d}]}]`))
	var names []string
	for _, c := range two.Object.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	if len(errs) > 0 || !slices.Equal(names, []string{"d", "e"}) {
		t.Errorf("AddEphemeral of a second container: got containers %v and errors %v, want the first and the second container", names, errs)
	}
	if again, errs := AddEphemeral(two, two.Object.Spec.EphemeralContainers); again != two || len(errs) > 0 {
		t.Errorf("AddEphemeral with the list that the pod already has: got another pod or errors %v, want the same pod", errs)
	}
}

func TestAddEphemeral_Refused(t *testing.T) {
	const d = `{name: d, image: busybox}`
	p, errs := AddEphemeral(debuggedPod(t), ephemeral(t, "["+d+"]"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct{ list, want string }{
		{`[]`, `spec.ephemeralContainers: Forbidden: "d" exists and cannot be removed before its pod is removed`},
		{`[{name: d, image: busybox, env: [{name: A, value: s3cret}]}]`, `spec.ephemeralContainers: Forbidden: "d" exists and cannot be changed; add a container with another name`},
		{`[` + d + `, {image: b}]`, `spec.ephemeralContainers[1].name: Required`},
		{`[` + d + `, {name: e}]`, `spec.ephemeralContainers[1].image: Required`},
		{`[` + d + `, {name: main, image: b}]`, `spec.ephemeralContainers[1].name: Duplicate value: "main"`},
		{`[` + d + `, {name: setup, image: b}]`, `spec.ephemeralContainers[1].name: Duplicate value: "setup"`},
		{`[` + d + `, {name: E, image: b}]`, `spec.ephemeralContainers[1].name: Invalid value: "E"`},
		{`[` + d + `, {name: e, image: b, targetContainerName: none}]`, `spec.ephemeralContainers[1].targetContainerName: Not found: "none"`},
		{`[` + d + `, {name: e, image: b, targetContainerName: d}]`, `spec.ephemeralContainers[1].targetContainerName: Not found: "d"`},
		{`[` + d + `, {name: e, image: b, ports: [{containerPort: 80}]}]`, `spec.ephemeralContainers[1].ports: Forbidden: cannot be set for an ephemeral container`},
		{`[` + d + `, {name: e, image: b, resources: {limits: {cpu: 1}}}]`, `spec.ephemeralContainers[1].resources: Forbidden`},
		{`[` + d + `, {name: e, image: b, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]}]`, `spec.ephemeralContainers[1].resizePolicy: Forbidden`},
		{`[` + d + `, {name: e, image: b, restartPolicy: Always}]`, `spec.ephemeralContainers[1].restartPolicy: Forbidden`},
		{`[` + d + `, {name: e, image: b, livenessProbe: {exec: {command: [a]}}}]`, `spec.ephemeralContainers[1].livenessProbe: Forbidden`},
		{`[` + d + `, {name: e, image: b, readinessProbe: {exec: {command: [a]}}}]`, `spec.ephemeralContainers[1].readinessProbe: Forbidden`},
		{`[` + d + `, {name: e, image: b, startupProbe: {exec: {command: [a]}}}]`, `spec.ephemeralContainers[1].startupProbe: Forbidden`},
		{`[` + d + `, {name: e, image: b, lifecycle: {preStop: {exec: {command: [a]}}}}]`, `spec.ephemeralContainers[1].lifecycle: Forbidden`},
		{`[` + d + `, {name: e, image: b, volumeMounts: [{name: none, mountPath: /d}]}]`, `spec.ephemeralContainers[1].volumeMounts[0].name: Invalid value: "none"`},
		{`[` + d + `, {name: e, image: b, volumeMounts: [{name: data, mountPath: /d, subPath: s}]}]`, `spec.ephemeralContainers[1].volumeMounts[0].subPath: Forbidden`},
		{`[` + d + `, {name: e, image: b, volumeMounts: [{name: data, mountPath: /d, subPathExpr: s}]}]`, `spec.ephemeralContainers[1].volumeMounts[0].subPathExpr: Forbidden`},
		{`[` + d + `, {name: e, image: b, securityContext: {windowsOptions: {runAsUserName: x}}}]`, `spec.ephemeralContainers[1].securityContext.windowsOptions: Forbidden: is for Windows`},
		{`[` + d + `, {name: e, image: b, securityContext: {privileged: true, allowPrivilegeEscalation: false}}]`, `spec.ephemeralContainers[1].securityContext`},
		{`[` + d + `, {name: e, image: b, args: ["` + strings.Repeat("x", validate.MaxEphemeralBytes) + `"]}]`, `spec.ephemeralContainers: Too long`},
		{`[` + d + strings.Repeat(`, {name: e, image: b}`, validate.MaxEphemeralContainers) + `]`, `spec.ephemeralContainers: Too many: 65: must have at most 64 items`},
	} {
		after, errs := AddEphemeral(p, ephemeral(t, c.list))
		text := errs.ToAggregate()
		if after != p || text == nil || !strings.Contains(text.Error(), c.want) || strings.Contains(text.Error(), "s3cret") {
			t.Errorf("AddEphemeral of %.200s\ngot  error %v\nwant error %s", c.list, text, c.want)
		}
	}
}
