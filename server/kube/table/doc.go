// Package table makes what kubectl get prints: metav1.Tables with the columns,
// the order and the words of Kubernetes 1.34, of pods, nodes, events,
// namespaces, ConfigMaps, Secrets, volumes and claims; a name and an age of
// anything else. Columns that only -o wide prints have a priority.
//
//	objects of one kind ─▶ Of ─▶ metav1.Table, a row for each
//	          a pod      ─▶ WordsOf ─▶ READY, STATUS, RESTARTS, AGE: podd ps prints them too
//
// All is pure: times are told as of the now that is passed in, and nothing of an
// object is written to.
package table
