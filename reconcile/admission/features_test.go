package admission

import (
	"strings"
	"testing"

	"podd/manifest/decode"
	"podd/reconcile/plan"
	"podd/runtime"
)

// TestAdmission_Features checks the reason and a part of the message for features that the
// node may lack; reason is "" if the pod is admitted.
func TestAdmission_Features(t *testing.T) {
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
	labelled := Features{Labels: map[string]string{"disk": "ssd", "cpus": "8"}}
	tests := map[string]struct {
		features        Features
		spec            string
		reason, message string
	}{
		"no requirements":                            {spec: pod},
		"safe sysctl":                                {spec: sysctl("net.ipv4.tcp_syncookies")},
		"safe sysctl with slashes":                   {spec: sysctl("net/ipv4/tcp_syncookies")},
		"unsafe sysctl":                              {spec: sysctl("net.core.somaxconn"), reason: "SysctlForbidden", message: "net.core.somaxconn"},
		"allowed sysctl":                             {Features{AllowedUnsafeSysctls: []string{"net.core.somaxconn"}}, sysctl("net.core.somaxconn"), "", ""},
		"sysctl allowed by a pattern":                {Features{AllowedUnsafeSysctls: []string{"net.core.*"}}, sysctl("net/core/somaxconn"), "", ""},
		"sysctl outside the pattern":                 {Features{AllowedUnsafeSysctls: []string{"net.core.*"}}, sysctl("net.ipv4.ip_forward"), "SysctlForbidden", "--allowed-unsafe-sysctls"},
		"sysctl longer than the allowed one":         {Features{AllowedUnsafeSysctls: []string{"kernel.msg"}}, sysctl("kernel.msgmax"), "SysctlForbidden", "kernel.msgmax"},
		"pod resources with pod cgroups":             {spec: pod + ", resources: {limits: {memory: 1Gi}}"},
		"pod resources without pod cgroups":          {Features{WithoutPodCgroups: true}, pod + ", resources: {limits: {memory: 1Gi}}", "PodLevelResourcesNotSupported", "cgroupsPerQOS: true"},
		"container resources without pod cgroups":    {Features{WithoutPodCgroups: true}, "containers: [{name: c, image: i, resources: {limits: {memory: 1Gi}}}]", "", ""},
		"handler exists":                             {Features{Runtime: kata}, class("kata"), "", ""},
		"handler missing":                            {Features{Runtime: kata}, class("gvisor"), "RuntimeHandlerNotFound", `has no handler "gvisor", only kata, runc; add the handler to the runtime's configuration, or map the RuntimeClass to another handler with --runtime-class=gvisor=HANDLER`},
		"class is mapped to a handler":               {Features{Runtime: kata, RuntimeClasses: map[string]string{"small": "kata"}}, class("small"), "", ""},
		"class is mapped to a missing handler":       {Features{Runtime: kata, RuntimeClasses: map[string]string{"kata": "fc"}}, class("kata"), "RuntimeHandlerNotFound", `"fc"`},
		"runtime lists no handlers":                  {Features{Runtime: old}, class("kata"), "", ""},
		"handler without user namespaces":            {Features{Runtime: kata}, class("kata") + ", hostUsers: false", "UserNamespacesNotSupported", "hostUsers"},
		"handler with user namespaces":               {Features{Runtime: kata}, class("runc") + ", hostUsers: false", "", ""},
		"label matches":                              {labelled, pod + ", nodeSelector: {disk: ssd}", "", ""},
		"label has another value":                    {labelled, pod + ", nodeSelector: {disk: hdd}", "NodeAffinity", "--node-labels"},
		"label missing":                              {Features{}, pod + ", nodeSelector: {disk: ssd}", "NodeAffinity", "nodeSelector"},
		"one of two terms matches":                   {labelled, affinity("{matchExpressions: [{key: disk, operator: In, values: [hdd]}]}, {matchExpressions: [{key: cpus, operator: Gt, values: ['4']}]}"), "", ""},
		"only one expression of a term matches":      {labelled, affinity("{matchExpressions: [{key: disk, operator: Exists}, {key: cpus, operator: Lt, values: ['8']}]}"), "NodeAffinity", "nodeAffinity"},
		"label must not exist":                       {labelled, affinity("{matchExpressions: [{key: disk, operator: DoesNotExist}]}"), "NodeAffinity", ""},
		"label must not have a value":                {labelled, affinity("{matchExpressions: [{key: disk, operator: NotIn, values: [hdd]}, {key: none, operator: NotIn, values: [a]}]}"), "", ""},
		"label is not a number":                      {labelled, affinity("{matchExpressions: [{key: disk, operator: Gt, values: ['1']}]}"), "NodeAffinity", ""},
		"node name matches":                          {labelled, affinity("{matchFields: [{key: metadata.name, operator: In, values: [node]}]}"), "", ""},
		"node name must not match":                   {labelled, affinity("{matchFields: [{key: metadata.name, operator: NotIn, values: [node]}]}"), "NodeAffinity", ""},
		"empty term":                                 {labelled, affinity("{}"), "NodeAffinity", ""},
		"user namespace":                             {Features{Runtime: new2}, pod + ", hostUsers: false", "", ""},
		"user namespace, containerd 1.6":             {Features{Runtime: old}, pod + ", hostUsers: false", "UserNamespacesNotSupported", "which containerd 1.6.20 does not support"},
		"no user namespace, containerd 1.6":          {Features{Runtime: old}, pod + ", hostUsers: true", "", ""},
		"user namespace, runtime not reached":        {spec: pod + ", hostUsers: false"},
		"strict supplemental groups":                 {Features{Runtime: new2}, strict, "", ""},
		"strict supplemental groups, containerd 1.6": {Features{Runtime: old}, strict, "SupplementalGroupsPolicyNotSupported", "containerd 1.6.20"},
		"merged supplemental groups, containerd 1.6": {Features{Runtime: old}, pod + ", securityContext: {supplementalGroupsPolicy: Merge}", "", ""},
		"stop signal":                                {Features{Runtime: new2}, signalled, "", ""},
		"stop signal, containerd 1.6":                {Features{Runtime: old}, signalled, "StopSignalNotSupported", "lifecycle.stopSignal of container d is not supported by containerd 1.6.20"},
		"stop signal, runtime not reached":           {Features{}, signalled, "", ""},
		"AppArmor profile":                           {Features{HasAppArmor: true}, profiled, "", ""},
		"AppArmor profile, AppArmor disabled":        {Features{}, profiled, "AppArmor", "container d "},
		"unconfined, AppArmor disabled":              {Features{}, pod + ", securityContext: {appArmorProfile: {type: Unconfined}}", "", ""},
		"sysctl without a namespace":                 {spec: sysctl("kernel.core_pattern"), reason: "SysctlForbidden", message: "kernel.core_pattern"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + tt.spec + "}\n"
			f := decode.File([]byte(text), decode.Options{Path: "f", NodeName: "node"})
			if f.HasRefusedDocument() || len(f.Pods) != 1 {
				t.Fatalf("%s: %v", text, f.Problems)
			}
			p := f.Pods[0]
			got := admitAll([]candidate{{Key: p.Key, Desired: p}}, Limits{Features: tt.features})[p.Key]
			want := plan.Verdict{}
			if tt.reason != "" {
				want = plan.Verdict{Answer: plan.Reject, Reason: tt.reason}
			}
			if got.Answer != want.Answer || got.Reason != want.Reason || !strings.Contains(got.Message, tt.message) {
				t.Errorf("got %+v, want %+v with a message that contains %q", got, want, tt.message)
			}
		})
	}
}
