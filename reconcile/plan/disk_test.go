package plan

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/decode"
)

// TestExceededLimit checks which limit of a pod's disk usage is reported first: of a volume, of the
// pod, or of a container.
func TestExceededLimit(t *testing.T) {
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
	f := decode.File([]byte(text), decode.Options{Path: "f", NodeName: "n"})
	if len(f.Pods) != 1 {
		t.Fatal(f.Problems)
	}
	p := f.Pods[0].WithEphemeral([]v1.EphemeralContainer{debugger("debug", "")})
	type use = map[string]int64
	type reasons = map[string]string
	const mi = 1 << 20
	const advised = "; raise the limit or write less"
	volume := `Usage of EmptyDir volume "sized" exceeds the limit "1Mi". The usage is `
	pod := "Pod ephemeral local storage usage exceeds the total limit of containers 6Mi. The usage is "
	container := func(name, limit string) string {
		return "Container " + name + " exceeded its local ephemeral storage limit \"" + limit + "\". The usage is "
	}
	const many = "more than 10 files and directories"
	excess := func(limit string) string {
		return " cannot be measured and counts as above the " + limit + " has " + many + ". The usage is at least "
	}
	for name, tt := range map[string]struct {
		use  DiskUse
		want string
	}{
		"usage unknown":                            {DiskUse{}, ""},
		"usage at the limits":                      {DiskUse{Volumes: use{"sized": mi}, Layers: use{"app": 3 * mi, "side": mi}, Logs: use{"app": mi}}, ""},
		"a volume":                                 {DiskUse{Volumes: use{"sized": 2 * mi}}, volume + "2Mi"},
		"volume before pod":                        {DiskUse{Volumes: use{"sized": 8 * mi}}, volume + "8Mi"},
		"volume in memory":                         {DiskUse{Volumes: use{"mem": 8 * mi}}, ""},
		"a volume without a limit":                 {DiskUse{Volumes: use{"disk": 7 * mi}}, pod + "7Mi"},
		"logs of a container without a limit":      {DiskUse{Logs: use{"free": 7 * mi}}, pod + "7Mi"},
		"sum of volumes, layers and logs":          {DiskUse{Volumes: use{"disk": mi}, Layers: use{"free": 3 * mi, "init": mi}, Logs: use{"app": 2 * mi}}, pod + "7Mi"},
		"a container":                              {DiskUse{Layers: use{"app": 3 * mi}, Logs: use{"app": 2 * mi}}, container("app", "4Mi") + "5Mi"},
		"a layer on the disk of images":            {DiskUse{Layers: use{"app": 5 * mi}, HasImageDisk: true}, ""},
		"logs, with a disk of images":              {DiskUse{Layers: use{"app": mi}, Logs: use{"app": 4*mi + 1}, HasImageDisk: true}, container("app", "4Mi") + "4194305"},
		"the sum, with a disk of images":           {DiskUse{Layers: use{"app": 7 * mi}, HasImageDisk: true}, pod + "7Mi"},
		"a sidecar":                                {DiskUse{Layers: use{"side": 3 * mi}}, container("side", "2Mi") + "3Mi"},
		"init container":                           {DiskUse{Layers: use{"init": 2 * mi}}, ""},
		"an ephemeral container":                   {DiskUse{Layers: use{"debug": 4 * mi}, Logs: use{"debug": 3 * mi}}, pod + "7Mi"},
		"a termination message":                    {DiskUse{Messages: use{"app": 5 * mi}}, container("app", "4Mi") + "5Mi"},
		"message, layer and logs":                  {DiskUse{Layers: use{"app": 2 * mi}, Logs: use{"app": mi}, Messages: use{"app": 2 * mi}}, container("app", "4Mi") + "5Mi"},
		"messages without a limit":                 {DiskUse{Messages: use{"free": 4 * mi, "debug": 3 * mi}}, pod + "7Mi"},
		"the hosts file":                           {DiskUse{HostsFile: 7 * mi}, pod + "7Mi"},
		"the hosts file and more":                  {DiskUse{HostsFile: 4 * mi, Volumes: use{"disk": 2 * mi}, Logs: use{"free": mi}}, pod + "7Mi"},
		"hosts file below the limit of the pod":    {DiskUse{HostsFile: 5 * mi}, ""},
		"a volume with many files":                 {DiskUse{Volumes: use{"sized": mi / 2}, Incomplete: IncompleteMeasurements{Volumes: reasons{"sized": many}}}, `Usage of EmptyDir volume "sized"` + excess(`limit "1Mi": the volume`) + "512Ki"},
		"volume with many files exceeds its limit": {DiskUse{Volumes: use{"sized": 2 * mi}, Incomplete: IncompleteMeasurements{Volumes: reasons{"sized": many}}}, volume + "2Mi"},
		"volume without a limit with many files":   {DiskUse{Volumes: use{"disk": mi}, Incomplete: IncompleteMeasurements{Volumes: reasons{"disk": many}}}, "Pod ephemeral local storage usage" + excess(`total limit of containers 6Mi: EmptyDir volume "disk"`) + "1Mi"},
		"volume in memory with many files":         {DiskUse{Incomplete: IncompleteMeasurements{Volumes: reasons{"mem": many}}}, ""},
		"many log files":                           {DiskUse{Logs: use{"app": mi}, Incomplete: IncompleteMeasurements{Logs: reasons{"app": many}}}, "Pod ephemeral local storage usage" + excess("total limit of containers 6Mi: the log directory of container app") + "1Mi"},
		"volume below the limit of the pod":        {DiskUse{Volumes: use{"disk": 5 * mi}}, ""},
	} {
		switch {
		case strings.Contains(tt.want, many):
			tt.want += "; write fewer files or remove the limit"
		case tt.want != "":
			tt.want += advised
		}
		got, signal := "", ""
		if l := tt.use.ExceededLimit(&p.Object.Spec); l != nil {
			got, signal = l.Message(), l.Signal
		}
		if want := wantLimitSignal(tt.want); signal != want {
			t.Errorf("%s: got signal %q, want %q", name, signal, want)
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
	for _, spec := range []string{"{containers: [{name: c, image: i, resources: {limits: {ephemeral-storage: 0}}}]}", "{containers: [{name: c, image: i}]}"} {
		f := decode.File([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: "+spec), decode.Options{Path: "f", NodeName: "n"})
		if len(f.Pods) != 1 {
			t.Fatal(f.Problems)
		}
		unlimited := DiskUse{Layers: use{"c": mi}, Incomplete: IncompleteMeasurements{Logs: reasons{"c": many}}}
		if got := unlimited.ExceededLimit(&f.Pods[0].Object.Spec); got != nil {
			t.Errorf("pod without a limit, spec %s: got the exceeded limit %+v, want none", spec, got)
		}
	}
}

// wantLimitSignal returns the kubelet's name of the limit in an eviction message.
func wantLimitSignal(message string) string {
	kind, _, _ := strings.Cut(message, " ")
	return map[string]string{"Usage": "emptydirfs.limit", "Pod": "ephemeralpodfs.limit", "Container": "ephemeralcontainerfs.limit"}[kind]
}
