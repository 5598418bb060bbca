package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// What a hash is made of is frozen: a change of anything in this file gives
// every pod on every machine a new UID, and so restarts it. If it must change,
// the version goes up, and what "v1:" hashes were made of stays here.
const hashVersion = "v1:"

// sandboxFields are the fields of a pod's spec that its sandbox is made from.
var sandboxFields = []string{
	"dnsConfig", "dnsPolicy", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname", "hostnameOverride",
	"os", "overhead", "runtimeClassName", "securityContext", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
}

// userPart is a shallow copy of a pod's tree without status and the metadata
// that a server sets: they come and go in an exported manifest.
func userPart(tree map[string]any) map[string]any {
	pod := maps.Clone(tree)
	delete(pod, "status")
	if meta, ok := pod["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		for _, key := range serverFields {
			delete(meta, key)
		}
		pod["metadata"] = meta
	}
	return pod
}

// canonical is the user's part of a pod without nulls and without metadata that
// does nothing here, and with kind and apiVersion, which a PodList leaves out.
func canonical(user map[string]any) map[string]any {
	pod := withoutNulls(user).(map[string]any)
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	if meta, ok := pod["metadata"].(map[string]any); ok {
		delete(meta, "finalizers")
		delete(meta, "generateName")
	}
	return pod
}

// unchanging is a pod without what an apiserver lets be changed while it runs:
// metadata, images, and the fields of changingSpec.
func unchanging(user map[string]any) map[string]any {
	pod := maps.Clone(user)
	if meta, ok := pod["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		delete(meta, "annotations")
		delete(meta, "labels")
		pod["metadata"] = meta
	}
	spec, ok := pod["spec"].(map[string]any)
	if !ok {
		return pod
	}
	spec = maps.Clone(spec)
	for _, name := range changingSpec {
		delete(spec, name)
	}
	for _, list := range []string{"initContainers", "containers"} {
		if items, ok := spec[list].([]any); ok {
			spec[list] = eachOf(items, imageless)
		}
	}
	pod["spec"] = spec
	return pod
}

var changingSpec = []string{"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"}

func imageless(v any) any {
	c, ok := v.(map[string]any)
	if !ok {
		return v
	}
	c = maps.Clone(c)
	delete(c, "image")
	return c
}

// version is what tells two versions of a pod apart: all that the user wrote but
// for how much cpu and memory its containers have, which is changed while they
// run, and the class that this puts it into, which its cgroup lies in. Of a pod
// that runs to its end these amounts are part, too: an edit has it run again.
func version(user map[string]any, p *v1.Pod) []any {
	class := QoS(p)
	if p.Spec.RestartPolicy != v1.RestartPolicyAlways {
		return []any{user, class}
	}
	pod := maps.Clone(user)
	if spec, ok := pod["spec"].(map[string]any); ok {
		spec = maps.Clone(spec)
		for _, list := range []string{"initContainers", "containers"} {
			if items, ok := spec[list].([]any); ok {
				spec[list] = eachOf(items, unsized)
			}
		}
		pod["spec"] = spec
	}
	return []any{pod, class}
}

// unsized is a container that asks for some cpu or memory, however much.
func unsized(v any) any {
	c, _ := v.(map[string]any)
	r, ok := c["resources"].(map[string]any)
	if !ok {
		return v
	}
	c, r = maps.Clone(c), maps.Clone(r)
	for _, list := range []string{"limits", "requests"} {
		if amounts, ok := r[list].(map[string]any); ok {
			r[list] = someOf(amounts)
		}
	}
	c["resources"] = r
	return c
}

// someOf keeps a zero: with it there is no limit.
func someOf(amounts map[string]any) map[string]any {
	amounts = maps.Clone(amounts)
	for _, name := range []string{string(v1.ResourceCPU), string(v1.ResourceMemory)} {
		v, written := amounts[name]
		if q, err := resource.ParseQuantity(fmt.Sprint(v)); written && err == nil && !q.IsZero() {
			amounts[name] = true // no amount is written so
		}
	}
	return amounts
}

func eachOf(items []any, change func(any) any) []any {
	out := make([]any, len(items))
	for i := range items {
		out[i] = change(items[i])
	}
	return out
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			if member != nil {
				out[key] = withoutNulls(member)
			}
		}
		return out
	case []any:
		return eachOf(v, withoutNulls)
	}
	return v
}

// digest is the hex SHA-256, cut to 128 bits, of the JSON of a list of values:
// keys sorted, no blanks, numbers in their shortest form.
func digest(parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic("manifest: hashing what JSON gave: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// makeUID is the UID of a pod whose user fixed none.
func makeUID(node string, key types.NamespacedName, version []any) types.UID {
	return types.UID(digest("uid", node, key.Namespace, key.Name, version))
}

// hashSandbox hashes what a pod's sandbox is made from; labels and annotations
// of the pod are not part of it, they are adopted without a restart.
func hashSandbox(pod map[string]any) string {
	spec, _ := pod["spec"].(map[string]any)
	meta, _ := pod["metadata"].(map[string]any)
	picked := map[string]any{}
	for _, key := range sandboxFields {
		if v, ok := spec[key]; ok {
			picked[key] = v
		}
	}
	var ports []any
	privileged := false
	eachContainer(spec, func(_ string, c map[string]any) {
		ports = append(ports, c["ports"])
		security, _ := c["securityContext"].(map[string]any)
		privileged = privileged || security["privileged"] == true
	})
	return hashVersion + digest("sandbox", meta["namespace"], meta["name"], picked, ports, privileged)
}

// hashContainers tells of every init and regular container, by name, whether it
// is another one. Its size is that of spec, which has defaults.
func hashContainers(pod map[string]any, of *v1.PodSpec) map[string]ContainerHash {
	sizes := sizesOf(of)
	spec, _ := pod["spec"].(map[string]any)
	hashes := map[string]ContainerHash{}
	eachContainer(spec, func(list string, c map[string]any) {
		name, _ := c["name"].(string)
		rest := make(map[string]any, len(c))
		for key, v := range c {
			if key != "resources" {
				rest[key] = v
			}
		}
		hashes[name] = ContainerHash{
			Start: hashVersion + digest("start", list, rest),
			Size:  sizes[name],
		}
	})
	return hashes
}

func eachContainer(spec map[string]any, visit func(list string, container map[string]any)) {
	for _, list := range []string{"initContainers", "containers"} {
		items, _ := spec[list].([]any)
		for _, item := range items {
			if c, ok := item.(map[string]any); ok {
				visit(list, c)
			}
		}
	}
}
