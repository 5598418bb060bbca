package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/yaml"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
	"podd/runtime"
	"podd/runtime/runtimetest/golden"
)

const dir = "../../testdata/render"

// TestGolden renders every pod of testdata/render, first its sandbox and then its containers in the
// order of the manifest, and compares the result with the golden file of the pod.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(dir + "/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("got %d manifests in %s (error %v), want at least 12", len(files), dir, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			got := renderAll(t, readPod(t, file), goldenNode(name))
			golden.Compare(t, strings.TrimSuffix(file, ".yaml")+".golden", got)
		})
	}
}

// TestGolden_InputUnchanged checks that rendering, and changes to the result, do not modify the pod
// and the node.
func TestGolden_InputUnchanged(t *testing.T) {
	files, _ := filepath.Glob(dir + "/*.yaml")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		p, n := readPod(t, file), goldenNode(name)
		first := renderAll(t, p, n)
		for _, message := range messages(t, p, n) {
			scribble(message)
		}
		if diff := cmp.Diff(readPod(t, file), p); diff != "" {
			t.Errorf("%s: rendering modified the pod (-before +after):\n%s", name, diff)
		}
		if diff := cmp.Diff(goldenNode(name), n); diff != "" {
			t.Errorf("%s: rendering modified the node (-before +after):\n%s", name, diff)
		}
		if second := renderAll(t, p, n); first != second {
			t.Errorf("%s: second rendering (-first +second):\n%s", name, cmp.Diff(first, second))
		}
	}
}

func readPod(t *testing.T, file string) *manifest.Pod {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := decode.File(text, decode.Options{Path: "/etc/podd/" + filepath.Base(file), NodeName: "node1"})
	if len(f.Pods) != 1 {
		t.Fatalf("%s: got %d pods and %v, want one pod", file, len(f.Pods), f.Problems)
	}
	if text, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".added"); err == nil {
		f.Pods[0] = withEphemeral(t, f.Pods[0], text)
	}
	if len(f.Objects.Origins) > 0 {
		goldenRefs[f.Pods[0].Key] = refs.Resolve(f.Pods[0], &manifest.Set{ObjectsBySource: map[string]manifest.Objects{"": f.Objects}, CompleteSources: map[string]bool{"": true}}, "salt", nil)
	}
	return f.Pods[0]
}

// withEphemeral returns p with ephemeral containers.
func withEphemeral(t *testing.T, p *manifest.Pod, text []byte) *manifest.Pod {
	t.Helper()
	var list []v1.EphemeralContainer
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		t.Fatal(err)
	}
	p, errs := decode.AddEphemeral(p, list)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

// goldenRefs contains the resolved references of the golden pods.
var goldenRefs = map[types.NamespacedName]*refs.Resolved{}

// goldenNode returns an edge node, or a control-plane node for the pods of kubeadm.
func goldenNode(name string) Node {
	n := Node{
		Name:       "node1",
		HostIPs:    []string{"192.0.2.10", "2001:db8::10"},
		Capacity:   Resources{MilliCPU: 4000, Memory: 4 << 30, EphemeralStorage: 64 << 30},
		InstanceID: "0123456789abcdef",
		DNS: DNS{
			Servers: []string{"192.0.2.53"}, Searches: []string{"lan.example"}, Options: []string{"rotate"},
		},
		SeccompDir: "/var/lib/podd/seccomp",
	}
	if strings.HasPrefix(name, "kubeadm-") {
		n.CgroupDriver, n.UsesCgroupV2, n.SupportsSwapLimits = "systemd", true, true
		n.ClusterDNS, n.ClusterDomain = []string{"10.96.0.10"}, "cluster.local"
		n.HugePageSizes = []string{"2MB", "1GB"}
	}
	if name == "hugepages" {
		n.HugePageSizes = []string{"2MB", "1GB"}
	}
	return n
}

// messages returns the configs of a pod and its containers.
func messages(t *testing.T, p *manifest.Pod, n Node) []proto.Message {
	t.Helper()
	all := []proto.Message{sandbox(t, p, n, 1)}
	spec := &p.Object.Spec
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c, err := Container(inputFor(p, n, &list[i]))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
	}
	for i := range spec.EphemeralContainers {
		e := &spec.EphemeralContainers[i]
		in := inputFor(p, n, (*v1.Container)(&e.EphemeralContainerCommon))
		if in.BackoffStep, in.Attempt, in.Restarts = 0, 0, 0; e.TargetContainerName != "" {
			in.TargetID = "id-of-" + e.TargetContainerName
		}
		c, err := Container(in)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// hostIDs are the host IDs of a golden pod with a user namespace.
var hostIDs = runtime.IDRange{First: 3 * runtime.DefaultIDsPerPod, Length: runtime.DefaultIDsPerPod}

func sandbox(t *testing.T, p *manifest.Pod, n Node, attempt uint32) *cri.PodSandboxConfig {
	t.Helper()
	config, err := Sandbox(SandboxInput{Pod: p, Node: n, Attempt: attempt, UserIDs: hostIDs})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func inputFor(p *manifest.Pod, n Node, c *v1.Container) ContainerInput {
	in := ContainerInput{
		Pod: p, Container: c, Node: n, Attempt: 2, Restarts: 2, Image: "sha256:feed", BackoffStep: 1,
		UserIDs: hostIDs, ImageUser: &runtime.ImageUser{}, Volumes: map[string]string{}, Refs: goldenRefs[p.Key],
	}
	if !p.Object.Spec.HostNetwork {
		in.PodIPs = []string{"10.88.0.3", "fd00::3"}
	}
	for _, v := range p.Object.Spec.Volumes {
		in.Volumes[v.Name] = "/var/lib/podd/pods/" + string(p.UID) + "/volumes/kubernetes.io~empty-dir/" + v.Name
		if v.HostPath != nil {
			in.Volumes[v.Name] = v.HostPath.Path
		}
	}
	in.Devices = goldenDevices(c)
	in.EnvFiles = map[EnvFile]string{}
	for _, f := range EnvFiles(c) {
		in.EnvFiles[f] = "TOKEN='in file'\n"
	}
	return in
}

// goldenDevices returns the devices that plugins allocate to a container, with conflicts among
// them.
func goldenDevices(c *v1.Container) []DeviceGrant {
	var all []DeviceGrant
	for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
		n := c.Resources.Limits[name]
		if !manifest.IsExtendedResource(name) || n.IsZero() {
			continue
		}
		d := DeviceGrant{Resource: string(name), Response: &v1beta1.ContainerAllocateResponse{
			Envs:        map[string]string{"FANCY": string(name), "OWN": "the plugin's"},
			Mounts:      []*v1beta1.Mount{{HostPath: "/opt/" + string(name), ContainerPath: "/usr/lib/fancy", ReadOnly: true}},
			Devices:     []*v1beta1.DeviceSpec{{HostPath: "/dev/fancy", ContainerPath: "/dev/fancy", Permissions: "rw"}},
			Annotations: map[string]string{"example.com/of": string(name)},
			CdiDevices:  []*v1beta1.CDIDevice{{Name: "example.com/fancy=" + string(name[12:])}, {Name: "example.com/fancy=all"}},
		}}
		for i := range n.Value() {
			d.IDs = append(d.IDs, fmt.Sprint("dev", i))
		}
		all = append(all, d)
	}
	return all
}

func renderAll(t *testing.T, p *manifest.Pod, n Node) string {
	t.Helper()
	var out strings.Builder
	for _, m := range messages(t, p, n) {
		fmt.Fprintf(&out, "# %s\n%s\n", m.ProtoReflect().Descriptor().Name(), readable(t, m))
	}
	for i := range p.Object.Spec.Volumes {
		writeFiles(t, &out, PodVolumes{Pod: p, Refs: goldenRefs[p.Key], Node: n}, &p.Object.Spec.Volumes[i])
	}
	return placeholders(p).Replace(out.String())
}

// writeFiles prints the files of a volume that podd writes.
func writeFiles(t *testing.T, out *strings.Builder, c PodVolumes, v *v1.Volume) {
	t.Helper()
	if !isProjected(&v.VolumeSource) {
		return
	}
	files, err := c.Files(v)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "# volume %s\n", v.Name)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(out, "%04o %s %q\n", files[name].Mode, name, files[name].Data)
	}
}

// placeholders returns a replacer that replaces the hashes and the UID of a pod with placeholders.
func placeholders(p *manifest.Pod) *strings.Replacer {
	pairs := []string{p.Hash, "HASH"}
	if !p.HasFixedUID {
		pairs = append(pairs, string(p.UID), "UID")
	}
	for name, h := range p.ContainerHashes {
		pairs = append(pairs, h.StartHashPrefix(), "START-"+name)
	}
	return strings.NewReplacer(pairs...)
}

// readable returns a message as indented JSON. The values of variables are text. A long list with
// its usual values is replaced with one word.
func readable(t *testing.T, m proto.Message) string {
	t.Helper()
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	envs, _ := tree["envs"].([]any)
	for _, e := range envs {
		pair := e.(map[string]any)
		text, _ := pair["value"].(string)
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		pair["value"] = string(value)
	}
	shorten(tree, "masked_paths", maskedPaths)
	shorten(tree, "readonly_paths", readonlyPaths)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(tree); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// shorten replaces a list of the security context if it has its usual values.
func shorten(tree map[string]any, key string, usual []string) {
	linux, _ := tree["linux"].(map[string]any)
	security, _ := linux["security_context"].(map[string]any)
	if fmt.Sprint(security[key]) == fmt.Sprint(usual) {
		security[key] = "the usual"
	}
}
