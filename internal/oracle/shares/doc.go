// Package shares is the slow model of queues: what each class of a tree gets of what is
// offered to it, in the long run.
package shares
