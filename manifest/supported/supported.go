// Package supported lists the fields of pods, claims, PersistentVolumes and CSIDrivers that podd supports. It
// rejects all other fields, so that podd does not ignore a field silently. An object must be given
// as JSON values without defaults, because only fields that a user wrote are checked. The functions
// return Problems with a Severity, FieldPath and Message.
package supported

import "podd/manifest"

// CheckPod checks a pod of a manifest.
func CheckPod(tree any) []manifest.Problem { return check(podRules(), tree, "") }

// CheckClusterPod checks a pod of an API server. podd supports more fields of these pods than of
// pods in manifests.
func CheckClusterPod(tree any) []manifest.Problem { return check(clusterRules(), tree, "") }

// CheckObject checks an object of a kind other than Pod. It returns no Problems for kinds of which
// podd supports all fields.
func CheckObject(kind string, tree any) []manifest.Problem {
	rules := objectRules()[kind]
	if rules == nil {
		return nil
	}
	return check(rules, tree, "")
}

// CheckEphemeralContainer checks an ephemeral container. path is the path of the container in its
// pod.
func CheckEphemeralContainer(tree any, path string) []manifest.Problem {
	return check(ephemeralRules(), tree, path)
}

func check(rules *rule, tree any, path string) []manifest.Problem {
	var problems []manifest.Problem
	rules.walk(tree, path, func(p manifest.Problem) { problems = append(problems, p) })
	return problems
}
