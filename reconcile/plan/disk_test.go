package plan

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// TestOutgrown: a volume has its own limit, the pod the sum of its containers',
// a container its own; the first of them that is outgrown is the reason.
func TestOutgrown(t *testing.T) {
	const text = `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  initContainers:
  - {name: init, image: i, resources: {limits: {ephemeral-storage: 1Mi}}}
  - {name: side, image: i, restartPolicy: Always, resources: {limits: {ephemeral-storage: 2Mi}}}
  containers:
  - {name: app, image: i, resources: {limits: {ephemeral-storage: 4Mi}}}
  - {name: free, image: i}
  volumes:
  - {name: sized, emptyDir: {sizeLimit: 1Mi}}
  - {name: disk, emptyDir: {}}
  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
`
	f := manifest.Decode([]byte(text), manifest.Options{Path: "f", Node: "n"})
	if len(f.Pods) != 1 {
		t.Fatal(f.Problems)
	}
	p := f.Pods[0].WithEphemeral([]v1.EphemeralContainer{debugger("debug", "")})
	type use = map[string]int64
	const mi = 1 << 20
	const advised = "; raise the limit or write less, an edit starts the pod again"
	volume := `Usage of EmptyDir volume "sized" exceeds the limit "1Mi". It holds `
	pod := "Pod ephemeral local storage usage exceeds the total limit of containers 6Mi. It holds "
	container := func(name, limit string) string {
		return "Container " + name + " exceeded its local ephemeral storage limit \"" + limit + "\". It holds "
	}
	for name, tt := range map[string]struct {
		use  DiskUse
		want string
	}{
		"nothing known":              {DiskUse{}, ""},
		"all at their limits":        {DiskUse{use{"sized": mi}, use{"app": 3 * mi, "side": mi}, use{"app": mi}}, ""},
		"a volume":                   {DiskUse{Volumes: use{"sized": 2 * mi}}, volume + "2Mi"},
		"a volume before the pod":    {DiskUse{Volumes: use{"sized": 8 * mi}}, volume + "8Mi"},
		"memory is not disk":         {DiskUse{Volumes: use{"mem": 8 * mi}}, ""},
		"a volume without a limit":   {DiskUse{Volumes: use{"disk": 7 * mi}}, pod + "7Mi"},
		"logs count for the pod":     {DiskUse{Logs: use{"free": 7 * mi}}, pod + "7Mi"},
		"all of it together":         {DiskUse{use{"disk": mi}, use{"free": 3 * mi, "init": mi}, use{"app": 2 * mi}}, pod + "7Mi"},
		"a container":                {DiskUse{Layers: use{"app": 3 * mi}, Logs: use{"app": 2 * mi}}, container("app", "4Mi") + "5Mi"},
		"a sidecar":                  {DiskUse{Layers: use{"side": 3 * mi}}, container("side", "2Mi") + "3Mi"},
		"an init container is over":  {DiskUse{Layers: use{"init": 2 * mi}}, ""},
		"an ephemeral container":     {DiskUse{Layers: use{"debug": 4 * mi}, Logs: use{"debug": 3 * mi}}, pod + "7Mi"},
		"volumes are no container's": {DiskUse{Volumes: use{"disk": 5 * mi}}, ""},
	} {
		if tt.want != "" {
			tt.want += advised
		}
		if got := tt.use.Outgrown(&p.Spec.Spec); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
	for _, spec := range []string{"{containers: [{name: c, image: i, resources: {limits: {ephemeral-storage: 0}}}]}", "{containers: [{name: c, image: i}]}"} {
		f := manifest.Decode([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: "+spec), manifest.Options{Path: "f", Node: "n"})
		if len(f.Pods) != 1 {
			t.Fatal(f.Problems)
		}
		if got := (DiskUse{Layers: use{"c": mi}}).Outgrown(&f.Pods[0].Spec.Spec); got != "" {
			t.Errorf("%s: without a limit: %s", spec, got)
		}
	}
}
