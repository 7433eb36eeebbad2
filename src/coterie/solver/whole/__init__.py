"""Methods for networks that lie in this process as a whole: second-order steps, exact clusters, closer looks."""
