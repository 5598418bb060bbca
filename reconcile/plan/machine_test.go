package plan

import (
	"strings"
	"testing"

	"podd/manifest/decode"
	"podd/runtime"
)

// TestMachine: what a machine is asked for and may not have. want is the reason
// and a part of the message, "" is that the pod is admitted.
func TestMachine(t *testing.T) {
	const pod = "containers: [{name: c, image: i}]"
	sysctl := func(name string) string {
		return pod + ", securityContext: {sysctls: [{name: " + name + ", value: '1'}]}"
	}
	new2 := runtime.Node{Name: "containerd", Version: "v2.4.2", Reachable: true, SupplementalGroupsPolicy: true, Handlers: map[string]runtime.Handler{"": {UserNamespaces: true}}}
	old := runtime.Node{Name: "containerd", Version: "1.6.20", Reachable: true}
	const strict = pod + ", securityContext: {supplementalGroupsPolicy: Strict}"
	const profiled = "containers: [{name: c, image: i}, {name: d, image: i, securityContext: {appArmorProfile: {type: RuntimeDefault}}}]"
	const signalled = "os: {name: linux}, containers: [{name: c, image: i}, {name: d, image: i, lifecycle: {stopSignal: SIGINT}}]"
	class := func(name string) string { return pod + ", runtimeClassName: " + name }
	kata := new2
	kata.Handlers = map[string]runtime.Handler{"": {UserNamespaces: true}, "runc": {UserNamespaces: true}, "kata": {}}
	affinity := func(terms string) string {
		return pod + ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}"
	}
	labelled := Machine{Labels: map[string]string{"disk": "ssd", "cpus": "8"}}
	tests := map[string]struct {
		machine      Machine
		spec         string
		reason, says string
	}{
		"nothing":                     {spec: pod},
		"a safe sysctl":               {spec: sysctl("net.ipv4.tcp_syncookies")},
		"one with slashes":            {spec: sysctl("net/ipv4/tcp_syncookies")},
		"an unsafe one":               {spec: sysctl("net.core.somaxconn"), reason: "SysctlForbidden", says: "net.core.somaxconn"},
		"an allowed one":              {Machine{UnsafeSysctls: []string{"net.core.somaxconn"}}, sysctl("net.core.somaxconn"), "", ""},
		"allowed with its like":       {Machine{UnsafeSysctls: []string{"net.core.*"}}, sysctl("net/core/somaxconn"), "", ""},
		"another than allowed":        {Machine{UnsafeSysctls: []string{"net.core.*"}}, sysctl("net.ipv4.ip_forward"), "SysctlForbidden", "--allowed-unsafe-sysctls"},
		"longer than allowed":         {Machine{UnsafeSysctls: []string{"kernel.msg"}}, sysctl("kernel.msgmax"), "SysctlForbidden", "kernel.msgmax"},
		"a handler":                   {Machine{Runtime: kata}, class("kata"), "", ""},
		"no such handler":             {Machine{Runtime: kata}, class("gvisor"), "RuntimeHandlerNotFound", `has no handler "gvisor", only kata, runc; name one of them, or map the class with --runtime-class=gvisor=HANDLER`},
		"a handler of a class":        {Machine{Runtime: kata, RuntimeClasses: map[string]string{"small": "kata"}}, class("small"), "", ""},
		"a handler that is gone":      {Machine{Runtime: kata, RuntimeClasses: map[string]string{"kata": "fc"}}, class("kata"), "RuntimeHandlerNotFound", `"fc"`},
		"handlers are not told":       {Machine{Runtime: old}, class("kata"), "", ""},
		"a handler without users":     {Machine{Runtime: kata}, class("kata") + ", hostUsers: false", "UserNamespacesNotSupported", "hostUsers"},
		"a handler with users":        {Machine{Runtime: kata}, class("runc") + ", hostUsers: false", "", ""},
		"a label":                     {labelled, pod + ", nodeSelector: {disk: ssd}", "", ""},
		"another label":               {labelled, pod + ", nodeSelector: {disk: hdd}", "NodeAffinity", "--node-labels"},
		"no such label":               {Machine{}, pod + ", nodeSelector: {disk: ssd}", "NodeAffinity", "nodeSelector"},
		"one term of two":             {labelled, affinity("{matchExpressions: [{key: disk, operator: In, values: [hdd]}]}, {matchExpressions: [{key: cpus, operator: Gt, values: ['4']}]}"), "", ""},
		"not both of a term":          {labelled, affinity("{matchExpressions: [{key: disk, operator: Exists}, {key: cpus, operator: Lt, values: ['8']}]}"), "NodeAffinity", "nodeAffinity"},
		"a label it must not have":    {labelled, affinity("{matchExpressions: [{key: disk, operator: DoesNotExist}]}"), "NodeAffinity", ""},
		"a value it must not have":    {labelled, affinity("{matchExpressions: [{key: disk, operator: NotIn, values: [hdd]}, {key: none, operator: NotIn, values: [a]}]}"), "", ""},
		"a number that is none":       {labelled, affinity("{matchExpressions: [{key: disk, operator: Gt, values: ['1']}]}"), "NodeAffinity", ""},
		"the node's name":             {labelled, affinity("{matchFields: [{key: metadata.name, operator: In, values: [node]}]}"), "", ""},
		"another node's name":         {labelled, affinity("{matchFields: [{key: metadata.name, operator: NotIn, values: [node]}]}"), "NodeAffinity", ""},
		"a term of nothing":           {labelled, affinity("{}"), "NodeAffinity", ""},
		"users of its own":            {Machine{Runtime: new2}, pod + ", hostUsers: false", "", ""},
		"users of its own, on 1.6":    {Machine{Runtime: old}, pod + ", hostUsers: false", "UserNamespacesNotSupported", "containerd 1.6.20 gives none"},
		"the node's users":            {Machine{Runtime: old}, pod + ", hostUsers: true", "", ""},
		"users, nobody was asked":     {spec: pod + ", hostUsers: false"},
		"strict groups":               {Machine{Runtime: new2}, strict, "", ""},
		"strict groups, on 1.6":       {Machine{Runtime: old}, strict, "SupplementalGroupsPolicyNotSupported", "containerd 1.6.20"},
		"merged groups":               {Machine{Runtime: old}, pod + ", securityContext: {supplementalGroupsPolicy: Merge}", "", ""},
		"a signal":                    {Machine{Runtime: new2}, signalled, "", ""},
		"a signal, on 1.6":            {Machine{Runtime: old}, signalled, "StopSignalNotSupported", "lifecycle.stopSignal of container d is not served by containerd 1.6.20"},
		"a signal, nobody was asked":  {Machine{}, signalled, "", ""},
		"a profile":                   {Machine{AppArmor: true}, profiled, "", ""},
		"a profile without AppArmor":  {Machine{}, profiled, "AppArmor", "container d "},
		"no profile without AppArmor": {Machine{}, pod + ", securityContext: {appArmorProfile: {type: Unconfined}}", "", ""},
		"one of the machine":          {spec: sysctl("kernel.core_pattern"), reason: "SysctlForbidden", says: "kernel.core_pattern"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + tt.spec + "}\n"
			f := decode.File([]byte(text), decode.Options{Path: "f", Node: "node"})
			if f.Refused() || len(f.Pods) != 1 {
				t.Fatalf("%s: %v", text, f.Problems)
			}
			p := f.Pods[0]
			got := Admission([]Claimant{{Key: p.Key, Wants: p}}, Limits{Machine: tt.machine})[p.Key]
			want := Verdict{}
			if tt.reason != "" {
				want = Verdict{Answer: Reject, Reason: tt.reason}
			}
			if got.Answer != want.Answer || got.Reason != want.Reason || !strings.Contains(got.Message, tt.says) {
				t.Errorf("got %+v, want %+v with %q", got, want, tt.says)
			}
		})
	}
}
