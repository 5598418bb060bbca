// Package table builds the output of kubectl get, a metav1.Table. It has the columns, order and values
// of Kubernetes for pods, nodes, events, namespaces, ConfigMaps, Secrets, volumes, claims,
// ClusterTrustBundles and CSIDrivers, and name and age for any other kind. Columns that only -o wide
// prints have a priority.
//
//	objects of one kind ─▶ New ─▶ metav1.Table, a row per object
//	          a pod      ─▶ NewPodCells ─▶ READY, STATUS, RESTARTS, AGE: podd ps prints them too
//
// All functions compute ages from the argument now, and modify no object.
package table
