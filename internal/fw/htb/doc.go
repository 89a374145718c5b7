// Package htb has the kernel hold the packets of a tree of queues: a plan of HTB classes for the
// tree, and netlink to set it up on a device, to read what it has done and to take it away.
//
//	tbf 7765:            cuts super-packets, so that each packet counts for itself
//	  htb 7766:          the classes: 7766:1 is the root, 7766:n+1 the class n of the tree
//	    fq_codel         below each class that takes packets; bfifo if the kernel has none
//	    cake             instead, where the file asks for fairness among hosts and the kernel has it;
//	                     a filter says which host a packet is of, where it leaves
//
// The handles, and the rate of the tbf, tell weir's qdiscs from those of others, whichever process has set them up.
// docs/queues.md says what the plan keeps of a tree and what not.
package htb
