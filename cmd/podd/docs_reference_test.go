package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/runtime/runtimetest/golden"
)

// TestReferencePages checks that the pages "flags" and "configuration" describe the grammar of podd
// and the tables of package config. With -update, it writes both pages.
func TestReferencePages(t *testing.T) {
	for name, page := range map[string]string{"flags": flagsPage(t), "configuration": configurationPage(t)} {
		golden.Compare(t, filepath.Join("docs", name+".md"), page)
	}
}

// verbFlags returns the flags of a verb of podd, in the order of its help.
func verbFlags(t *testing.T, verb string) []*kong.Flag {
	t.Helper()
	k, err := newParser(newVerbs(), streams())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range k.Model.Children {
		if n.Name == verb {
			return n.Flags
		}
	}
	t.Fatalf("podd has no verb %s", verb)
	return nil
}

// flagText formats a flag as podd help does.
func flagText(f *kong.Flag) string {
	text := "--" + f.Name
	if f.Tag.Negatable != "" {
		text = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		text = fmt.Sprintf("-%c, %s", f.Short, text)
	}
	if !f.IsBool() {
		text += "=" + f.FormatPlaceHolder()
	}
	return text
}

// row returns a row of a Markdown table.
func row(cells ...string) string {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// code returns text as Markdown code, or "" if text is "".
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// flagsPage returns the page "flags".
func flagsPage(t *testing.T) string {
	names, err := os.ReadFile("internal/config/testdata/kubelet-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	kubeletFlags := strings.Fields(string(names))
	var b strings.Builder
	b.WriteString(`# Flags

` + "`podd run` accepts all flags of the kubelet of Kubernetes " + manifest.KubernetesRelease() + ". podd without a verb is the same as\n" +
		"`podd run`. Flags with a `*` are not flags of this kubelet. A flag takes precedence over its field in\n" +
		"the file of `--config`; see `podd help configuration`. `podd check`, `podd plan` and `podd volume`\n" +
		"accept the same flags, except those for `--runonce`, so that they check the same host and find the\n" +
		"same pods.\n")
	var hidden []*kong.Flag
	group := ""
	for _, f := range verbFlags(t, "run") {
		switch {
		case f.Hidden:
			hidden = append(hidden, f)
			continue
		case f.Group == nil:
			t.Errorf("--%s has no group", f.Name)
			continue
		case f.Group.Title != group:
			group = f.Group.Title
			b.WriteString("\n## " + group + "\n\n" + row("flag", "field", "effect") + row("---", "---", "---"))
		}
		mark := ""
		if !slices.Contains(kubeletFlags, f.Name) {
			mark = " *"
		}
		b.WriteString(row(code(flagText(f))+mark, code(f.Tag.Get("field")), f.Help))
	}
	writeOtherFlags(t, &b, hidden)
	writeFormerFlags(&b)
	writeVerbFlags(t, &b)
	return b.String()
}

// writeOtherFlags writes the flags of the kubelet that "podd help run" does not list. hidden contains
// the flags that podd run serves but hides.
func writeOtherFlags(t *testing.T, b *strings.Builder, hidden []*kong.Flag) {
	support := map[string]config.Support{}
	for _, f := range config.Fields() {
		support[f.Path] = f.Support
	}
	b.WriteString("\n## Other flags of the kubelet\n\n`podd help run` does not list these flags. They set a field of the configuration.\n\n" +
		row("flag", "field", "effect") + row("---", "---", "---"))
	write := func(name, field string) {
		effect := "ignored with a warning"
		switch {
		case field == "":
			effect = "served"
		case support[field] == config.Rejected:
			effect = "rejected"
		case rejectedValues[field] != "" || field == "featureGates":
			effect = "some values are rejected"
		case support[field] == config.Supported:
			effect = "served"
		case support[field] == config.SupportedInCluster:
			effect = "served with `--kubeconfig`"
		}
		b.WriteString(row(code("--"+name), code(field), effect))
	}
	for _, f := range hidden {
		write(f.Name, f.Tag.Get("field"))
	}
	var withoutField []config.KubeletFlag
	for _, f := range config.KubeletFlags() {
		if f.Field == "" {
			withoutField = append(withoutField, f)
			continue
		}
		write(f.Name, f.Field)
	}
	b.WriteString("\nThe following flags have no field. podd ignores them with a warning:\n\n" + row("flag", "reason") + row("---", "---"))
	for _, f := range withoutField {
		b.WriteString(row(code("--"+f.Name), f.Reason))
	}
}

// writeFormerFlags writes the flags of earlier kubelets that podd still accepts.
func writeFormerFlags(b *strings.Builder) {
	b.WriteString("\n## Former flags of the kubelet\n\n" +
		"podd also accepts these flags of earlier kubelets, since Kubernetes 1.3, so that it starts with an\n" +
		"old unit file. It prints a warning for each of them. The value of a renamed flag is applied. All\n" +
		"other flags are ignored, except `--register-schedulable=false`, which creates an unschedulable\n" +
		"Node. `--container-runtime` must be `remote`. The values of `--registry-qps`, `--event-qps` and\n" +
		"`--kube-api-qps` can have a fraction of zero, such as 5.0, as in Kubernetes 1.5.\n\n" +
		row("flags", "replacement") + row("---", "---"))
	for _, f := range config.AllFormerFlags() {
		replacement := f.Replacement
		if f.Current != "" {
			replacement = "renamed to " + code("--"+f.Current)
		}
		b.WriteString(row(code("--"+strings.Join(f.Names, "`, `--")), replacement))
	}
}

// writeVerbFlags writes the flags of all verbs except run.
func writeVerbFlags(t *testing.T, b *strings.Builder) {
	k, err := newParser(newVerbs(), streams())
	if err != nil {
		t.Fatal(err)
	}
	shared := map[string]bool{"help": true, "run-dir": true}
	for _, f := range verbFlags(t, "run") {
		if f.Group == nil || f.Group.Key != "With --runonce" {
			shared[f.Name] = true
		}
	}
	b.WriteString("\n## Flags of other verbs\n\nVerbs that connect to the running podd also have `--run-dir=DIR`, the directory of its socket.\n\n" +
		row("verbs", "flag", "effect") + row("---", "---", "---"))
	type line struct{ flag, effect string }
	verbs, lines := map[line][]string{}, []line(nil)
	for _, n := range k.Model.Children {
		if n.Name == "run" {
			continue
		}
		_, likeRun := n.Target.Addr().Interface().(interface{ KubeletFlags() *config.Flags })
		for _, f := range n.Flags {
			if f.Hidden || f.Name == "help" || f.Name == "run-dir" || likeRun && shared[f.Name] {
				continue
			}
			l := line{code(flagText(f)), f.Help}
			if verbs[l] == nil {
				lines = append(lines, l)
			}
			verbs[l] = append(verbs[l], n.Name)
		}
	}
	for _, l := range lines {
		b.WriteString(row(strings.Join(verbs[l], ", "), l.flag, l.effect))
	}
}

// defaultInHelp matches the default in the help of a flag. The page "configuration" omits this text,
// because the page has a column for defaults.
var defaultInHelp = regexp.MustCompile(` \(default [^)]*\)`)

// configurationPage returns the page "configuration".
func configurationPage(t *testing.T) string {
	withoutCluster := loadEffective(t, config.Flags{})
	inCluster := loadEffective(t, config.Flags{ClusterFlags: config.ClusterFlags{Kubeconfig: "/kubeconfig"}})
	flags := map[string]*kong.Flag{}
	for _, f := range verbFlags(t, "run") {
		if field := f.Tag.Get("field"); field != "" {
			flags[field] = f
		}
	}
	var b strings.Builder
	b.WriteString(configurationIntro + row("field", "served", "default", "reload", "effect") + row("---", "---", "---", "---", "---"))
	exists := map[string]bool{}
	for _, field := range config.Fields() {
		exists[field.Path] = true
		effect, hasEffect := fieldEffects[field.Path]
		if !hasEffect {
			if flags[field.Path] == nil {
				t.Errorf("%s has neither a flag nor a text in fieldEffects", field.Path)
				continue
			}
			effect = defaultInHelp.ReplaceAllString(flags[field.Path].Help, "")
		}
		served, value := "no", ""
		switch field.Support {
		case config.Supported:
			served, value = "yes", lookup(withoutCluster, field.Path)
		case config.SupportedInCluster:
			served, value = "in a cluster", lookup(inCluster, field.Path)
		case config.Rejected:
			served = "rejected"
		}
		if field.Support != config.Rejected && rejectedValues[field.Path] != "" || field.Path == "featureGates" {
			served = "partly"
		}
		if text, ok := fieldDefaults[field.Path]; ok {
			value = text
		}
		b.WriteString(row(code(field.Path), served, code(value), reload(field), effect))
	}
	for _, table := range []map[string]string{fieldEffects, reloadEffects} {
		for path := range table {
			if !exists[path] {
				t.Errorf("a table of texts contains %s, which is not a field of KubeletConfiguration", path)
			}
		}
	}
	b.WriteString(configurationGates)
	return b.String()
}

// reload returns the text in the column "reload" for a field.
func reload(f config.Field) string {
	switch {
	case reloadEffects[f.Path] == "-":
		return ""
	case reloadEffects[f.Path] != "":
		return reloadEffects[f.Path]
	case f.Support == config.Ignored || f.Support == config.Rejected:
		return ""
	}
	return "yes"
}

var configurationIntro = `# Configuration file

` + "`--config FILE`" + ` reads a KubeletConfiguration, as a kubelet of Kubernetes ` + manifest.KubernetesRelease() + ` does, and
` + "`--config-dir DIR`" + ` merges the ` + "`*.conf`" + ` files in DIR into it. Flags take precedence over both.

    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
    staticPodPath: /etc/podd/manifests
    maxPods: 50
    shutdownGracePeriod: 60s
    shutdownGracePeriodCriticalPods: 10s

podd checks all fields like a kubelet and reports every error with file, line and column.

No setting is ignored silently, even if its value is the default:

- A field that is not served has no effect, and podd names it and the reason in a warning.
- A field that is rejected must not be set.
- A field that is served partly has values that podd rejects.
- A field that is served in a cluster has no effect without ` + "`--kubeconfig`" + `. podd names such fields in
  a warning.
- With ` + "`--runonce`" + `, a field that only a daemon uses has no effect, such as the fields of endpoints,
  soft evictions, image garbage collection and node shutdown. podd names such fields in a warning.

The column reload shows whether a changed field takes effect without a restart of podd, with
[dynamic configuration](dynamic-configuration.md):

- "new pods": running pods and containers keep the old value until they are created again. Change
  cgroupRoot and podLogsDir only after ` + "`podd down`" + `, because podd does not search the old places.
- "new Node": only a Node that podd creates has the new value.
- "not removed": a new value takes effect, but what podd has changed on the host for the old value
  remains until the host restarts.

The table shows the defaults without a cluster, or with a cluster if a field is served only there.
The configuration in effect is at ` + "`/configz`" + ` of the kubelet API. The values of all flags in effect
are at ` + "`/flagz`" + `, also if a file sets them. Neither contains secrets.

`

var configurationGates = `
## Feature gates

podd knows the feature gates of the kubelet of Kubernetes ` + manifest.KubernetesRelease() + ` and rejects unknown names. It
warns about feature gates that earlier releases had. These feature gates can be true and false:

| feature gate | default | effect |
| --- | --- | --- |
| ` + "`GracefulNodeShutdown`" + ` | true | If false, shutdownGracePeriod and shutdownGracePeriodByPodPriority are rejected. |
| ` + "`GracefulNodeShutdownBasedOnPodPriority`" + ` | true | If false, shutdownGracePeriodByPodPriority is rejected. |
| ` + "`KubeletEnsureSecretPulledImages`" + ` | true | If false, a pod can use every image that is on the node, and imagePullCredentialsVerificationPolicy and preloadedImagesVerificationAllowlist are rejected. |
| ` + "`MemoryQoS`" + ` | true | If false, memoryThrottlingFactor and the policy TieredReservation of memoryReservationPolicy are rejected. |
| ` + "`CustomCPUCFSQuotaPeriod`" + ` | true | If false, any cpuCFSQuotaPeriod except 100ms is rejected. |
| ` + "`DefaultPodSysctls`" + ` | false | If false, defaultPodSysctls is rejected. |
| ` + "`SELinuxMount`" + ` | true | If false, a volume is mounted with an SELinux label only if ReadWriteOncePod is its only access mode. |
| ` + "`HugepageAwareEviction`" + ` | true | If false, the node's huge pages count as available memory, for evictions and in /stats/summary. |
| ` + "`KubeletInUserNamespace`" + ` | true | If false, the Node does not report in nodeInfo.runningInUserNamespace whether podd runs in a user namespace. |
| ` + "`PodsAPI`" + ` | true | If false, podd does not serve the gRPC API of pods (pods/v1alpha1) at pods-api/pods-api.sock in the root directory. |
| ` + "`LoggingAlphaOptions`" + ` | false | If false, splitStream is rejected. |

All other feature gates do not change the behavior of podd. podd rejects a feature gate that would
enable a feature that podd does not have, or disable a feature that podd has. It warns about a
feature gate that affects only other programs, such as those of the control plane.
`

// loadEffective returns the effective KubeletConfiguration of podd run with flags, as a decoded JSON
// object.
func loadEffective(t *testing.T, flags config.Flags) map[string]any {
	t.Helper()
	cfg, _, err := config.Load(flags, config.HostFacts{Program: "podd", Hostname: "node-1", UsesCgroupV2: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(cfg.RedactedConfig.Kubelet)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// lookup returns the value of the field at a path such as "logging.flushFrequency" as text. It
// returns "" if the field is not set.
func lookup(tree map[string]any, path string) string {
	var value any = tree
	for key := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		if minutes, ok := strings.CutSuffix(v, "m0s"); ok {
			v = minutes + "m"
		}
		return v
	case []any:
		return strings.Trim(fmt.Sprint(v), "[]")
	case map[string]any:
		return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(v), "map["), "]")
	default:
		return fmt.Sprint(v)
	}
}

// nest returns YAML that sets the field at a path such as "logging.flushFrequency" to value.
func nest(path, value string) string {
	keys := strings.Split(path, ".")
	return strings.Join(keys, ": {") + ": " + value + strings.Repeat("}", len(keys)-1)
}

// TestRejectedValues checks that podd rejects the values in rejectedValues.
func TestRejectedValues(t *testing.T) {
	for field, value := range rejectedValues {
		file := filepath.Join(t.TempDir(), "config.yaml")
		text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + nest(field, value) + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		flags := config.Flags{FileFlags: config.FileFlags{Config: file}, ClusterFlags: config.ClusterFlags{Kubeconfig: "/kubeconfig"}}
		_, _, err := config.Load(flags, config.HostFacts{Program: "podd", Hostname: "node-1", UsesCgroupV2: true})
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %s: got error %v, want an error that names the field", field, value, err)
		}
	}
}
