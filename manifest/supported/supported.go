// Package supported lists the fields of pods, claims and PersistentVolumes that podd
// supports, and rejects all others, so that no field is ignored silently.
//
// The functions take the JSON tree of an object, because only the fields that a user wrote
// count, and not those with a default. They return Problems with a Severity, Field and
// Message.
package supported

import "podd/manifest"

// Pod checks a pod of a manifest.
func Pod(tree any) []manifest.Problem { return check(podRules(), tree, "") }

// ClusterPod checks a pod of an API server, which may have more fields.
func ClusterPod(tree any) []manifest.Problem { return check(clusterRules(), tree, "") }

// Object checks an object of a kind other than Pod. Kinds without a table have all fields.
func Object(kind string, tree any) []manifest.Problem {
	rules := objectRules()[kind]
	if rules == nil {
		return nil
	}
	return check(rules, tree, "")
}

// EphemeralContainer checks an ephemeral container, whose fields get paths below path.
func EphemeralContainer(tree any, path string) []manifest.Problem {
	return check(ephemeralRules(), tree, path)
}

func check(rules *rule, tree any, path string) []manifest.Problem {
	var problems []manifest.Problem
	rules.walk(tree, path, func(p manifest.Problem) { problems = append(problems, p) })
	return problems
}
