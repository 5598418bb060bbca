package render

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// kubeletLine is a pod and what the kubelet of Kubernetes 1.34.4 itself asked
// of its runtime; module testdata/controlplane records it.
type kubeletLine struct {
	Node *struct {
		Name       string   `json:"name"`
		CgroupRoot string   `json:"cgroupRoot"`
		ResolvConf string   `json:"resolvConf"`
		Memory     int64    `json:"memory"`
		CPUs       int64    `json:"cpus"`
		HugePages  []string `json:"hugePages"`
	} `json:"node"`
	Pod        json.RawMessage  `json:"pod"`
	Sandbox    map[string]any   `json:"sandbox"`
	Containers []map[string]any `json:"containers"`
}

var seen = time.Unix(1, 0)

// TestKubelet renders the same pods and compares every field. Differences are
// those that kubeletDiffers has, each with its reason; what podd does not serve
// is counted.
func TestKubelet(t *testing.T) {
	var n Node
	pods, differ, unserved, used := 0, map[string][]string{}, map[string]int{}, map[string]int{}
	for _, l := range readKubelet(t) {
		if l.Node != nil {
			n = Node{
				Name: l.Node.Name, CgroupRoot: l.Node.CgroupRoot, CgroupDriver: "cgroupfs",
				DNS: ParseResolvConf(l.Node.ResolvConf), SeccompDir: "ROOT/seccomp", LogsDir: "LOGS", HostIPs: []string{"192.0.2.10"},
				HugePageSizes: l.Node.HugePages,
				SwapLimits:    true, // the machine that it was recorded on has them
				Capacity:      Resources{MilliCPU: l.Node.CPUs * 1000, Memory: l.Node.Memory},
			}
			continue
		}
		f := manifest.Decode(withClass(l.Pod), manifest.Options{Node: n.Name, Now: seen})
		if len(f.Pods) == 0 {
			for _, p := range f.Problems {
				unserved[p.Field]++
			}
			continue
		}
		pods++
		for _, d := range compareKubelet(t, f.Pods[0], n, l) {
			if why := kubeletWhy(d); why != "" {
				used[why]++
				continue
			}
			differ[d] = append(differ[d], string(l.Pod))
		}
	}
	for _, d := range slices.SortedFunc(maps.Keys(differ), func(a, b string) int { return len(differ[b]) - len(differ[a]) }) {
		t.Errorf("%d times %s, as for\n\t%s", len(differ[d]), d, differ[d][0])
	}
	for _, d := range kubeletDiffers {
		if used[d.why] == 0 {
			t.Errorf("%s: no pod needs this difference; remove it", d.field)
		}
	}
	if pods < 100 {
		t.Errorf("only %d pods are compared", pods)
	}
	t.Logf("%d pods; refused as not served: %v", pods, unserved)
}

// withClass names a runtime class beside an overhead, which the kubelet does
// without; it is nothing of the configs.
func withClass(pod json.RawMessage) []byte {
	return []byte(strings.Replace(string(pod), `"overhead":`, `"runtimeClassName":"vm","overhead":`, 1))
}

func readKubelet(t *testing.T) (lines []kubeletLine) {
	t.Helper()
	f, err := os.Open(dir + "/kubelet.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bufio.NewReader(z)); d.More(); {
		var l kubeletLine
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// compareKubelet says what differs of the configs of one pod.
func compareKubelet(t *testing.T, p *manifest.Pod, n Node, l kubeletLine) (list []string) {
	t.Helper()
	differing("sandbox", l.Sandbox, neutral(t, p, sandbox(t, p, n, 0)), &list)
	made := map[string]map[string]any{}
	spec := &p.Spec.Spec
	for _, all := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range all {
			c, err := Container(kubeletInput(p, n, &all[i]))
			if err != nil {
				list = append(list, "podd cannot render: "+err.Error())
				continue
			}
			made[all[i].Name] = neutral(t, p, c)
		}
	}
	for _, theirs := range l.Containers {
		name := theirs["metadata"].(map[string]any)["name"].(string)
		if made[name] != nil {
			differing("container", theirs, made[name], &list)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// kubeletInput is what the kubelet had made before it asked.
func kubeletInput(p *manifest.Pod, n Node, c *v1.Container) ContainerInput {
	home := "ROOT/pods/" + string(p.UID)
	in := ContainerInput{
		Pod: p, Container: c, Node: n, Image: "sha256:feed", ImageUser: &ImageUser{}, UserIDs: hostIDs,
		HostsFile:      home + "/etc-hosts",
		TerminationLog: home + "/containers/" + c.Name + "/TERMINATION", Volumes: map[string]string{}, SubPaths: map[int]string{},
	}
	if !p.Spec.Spec.HostNetwork {
		in.PodIPs = []string{"10.88.0.3", "fd00::3"}
	}
	for _, v := range p.Spec.Spec.Volumes {
		kind := "empty-dir"
		switch {
		case v.HostPath != nil:
			in.Volumes[v.Name] = v.HostPath.Path
			continue
		case v.DownwardAPI != nil:
			kind = "downward-api"
		case v.Projected != nil:
			kind = "projected"
		}
		in.Volumes[v.Name] = home + "/volumes/kubernetes.io~" + kind + "/" + v.Name
	}
	for i, m := range c.VolumeMounts {
		if m.SubPath != "" || m.SubPathExpr != "" {
			in.SubPaths[i] = fmt.Sprintf("%s/volume-subpaths/%s/%s/%d", home, m.Name, c.Name, i)
		}
	}
	return in
}

// neutral is a config as the recording has them.
func neutral(t *testing.T, p *manifest.Pod, config any) map[string]any {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal([]byte(strings.NewReplacer(string(p.UID), "UID", seen.Format(time.RFC3339Nano), "SEEN").Replace(string(text))), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// differing gathers the fields that differ. Variables are compared by name.
func differing(path string, theirs, ours any, list *[]string) {
	if empty(theirs) && empty(ours) || reflect.DeepEqual(theirs, ours) {
		return
	}
	a, isMap := theirs.(map[string]any)
	b, areMaps := ours.(map[string]any)
	if isMap && (areMaps || ours == nil) || areMaps && theirs == nil {
		keys := map[string]bool{}
		for _, m := range []map[string]any{a, b} {
			for key := range m {
				keys[key] = true
			}
		}
		for key := range keys {
			differing(path+"."+key, a[key], b[key], list)
		}
		return
	}
	x, isList := theirs.([]any)
	y, areLists := ours.([]any)
	if isList && areLists && strings.HasSuffix(path, ".envs") {
		differing(path, byKey(x), byKey(y), list)
		return
	}
	if strings.HasSuffix(path, ".dns_config.options") { // in any order
		byText := func(a, b any) int { return strings.Compare(shown(a), shown(b)) }
		x, y = slices.SortedFunc(slices.Values(x), byText), slices.SortedFunc(slices.Values(y), byText)
	}
	if isList && areLists && len(x) == len(y) {
		for i := range x {
			differing(path+"[]", x[i], y[i], list)
		}
		return
	}
	*list = append(*list, fmt.Sprintf("%s: kubelet %s, podd %s", path, shown(theirs), shown(ours)))
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func byKey(list []any) map[string]any {
	out := map[string]any{}
	for _, item := range list {
		out[item.(map[string]any)["key"].(string)] = item
	}
	return out
}

func shown(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// kubeletDiffers are the fields in which podd means to differ.
var kubeletDiffers = []struct {
	field *regexp.Regexp
	why   string
}{
	{regexp.MustCompile(`^(sandbox|container)\.(annotations\.podd/|labels\.podd\.)`), "podd's own, to find its pods again; nobody else may write them"},
	{regexp.MustCompile(`^container\.annotations\.io\.kubernetes\.container\.hash:`), "of the whole container, so that every edit counts, not of name and image alone"},
	{regexp.MustCompile(`^sandbox\.port_mappings: kubelet .*, podd .*"container_port":15000`), "the host ports of sidecars are mapped, too"},
	{regexp.MustCompile(`^container\.envs\.IP\.value: kubelet null, podd "192\.0\.2\.10"$`), "on the host's network a pod has the host's address, which a kubelet knows of an API server only"},
}

// kubeletWhy is the reason of a difference, or "".
func kubeletWhy(difference string) string {
	for _, d := range kubeletDiffers {
		if d.field.MatchString(difference) {
			return d.why
		}
	}
	return ""
}
