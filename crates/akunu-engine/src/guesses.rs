//! Guesses that branch.
//!
//! ```text
//! answer so far   … the cat sat on
//! guesses         0: the   1: mat   2: .          the trunk
//!                  └─ 3: sofa                     another continuation of "the"
//! ```
//!
//! A guess follows its parent, which comes before it, or the last token of the answer. All guesses are rows of one step; a
//! row sees its parents and not the other branches, so that it chooses what it would choose in a text of its own branch.
//! Acceptance goes from the last token of the answer to the guess that was chosen there, and on from that one.

/// A guessed token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    token: u32,
    /// The guess that it follows; `None` for the last token of the answer.
    parent: Option<usize>,
}

/// The guesses of a step: a chain, or a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

/// What came of a tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The guesses that were right, one after the other.
    pub path: Vec<usize>,
    /// What was chosen: each of them, and a token after the last.
    pub tokens: Vec<u32>,
}

impl Tree {
    /// Guesses that follow each other.
    pub fn chain(tokens: &[u32]) -> Tree {
        let mut tree = Tree::default();
        tree.add(None, tokens);
        tree
    }

    /// Adds guesses that follow each other, the first of them after `parent`.
    pub fn add(&mut self, mut parent: Option<usize>, tokens: &[u32]) {
        for &token in tokens {
            self.nodes.push(Node { token, parent });
            parent = Some(self.nodes.len() - 1);
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The first guesses that follow each other.
    pub fn n_trunk(&self) -> usize {
        let nodes = self.nodes.iter().enumerate();
        nodes
            .take_while(|(at, node)| node.parent == at.checked_sub(1))
            .count()
    }

    /// How many guesses of the trunk come before the first branch; `None` without one.
    pub fn fork(&self) -> Option<usize> {
        let first = self.nodes.get(self.n_trunk())?;
        Some(first.parent.map_or(0, |parent| parent + 1))
    }

    /// Whether it has more than one branch.
    pub fn is_branched(&self) -> bool {
        self.n_trunk() < self.len()
    }

    /// The guess that this one follows; `None` for the last token of the answer.
    pub fn parent(&self, node: usize) -> Option<usize> {
        self.nodes[node].parent
    }

    /// All guesses, in the order of their rows.
    pub fn tokens(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().map(|node| node.token)
    }

    /// The guesses from the first up to this one, along its branch.
    pub fn path(&self, node: usize) -> Vec<usize> {
        let mut path = vec![node];
        let parent = |node: &usize| self.nodes[*node].parent;
        path.extend(std::iter::successors(parent(&node), parent));
        path.reverse();
        path
    }

    /// The place of a guess in its branch, from 0.
    pub fn depth(&self, node: usize) -> usize {
        self.path(node).len() - 1
    }

    /// The branches: the paths to all guesses that nothing follows.
    pub fn branches(&self) -> Vec<Vec<usize>> {
        let is_leaf = |node: &usize| self.nodes.iter().all(|other| other.parent != Some(*node));
        let leaves = (0..self.len()).filter(is_leaf);
        leaves.map(|leaf| self.path(leaf)).collect()
    }

    /// The tokens along a path.
    pub fn tokens_of(&self, path: &[usize]) -> Vec<u32> {
        path.iter().map(|&node| self.nodes[node].token).collect()
    }

    /// What the row of a guess does not see: bit i is that of the row i before it.
    pub fn hidden(&self, node: usize) -> u32 {
        let path = self.path(node);
        let others = (0..node).filter(|other| !path.contains(other));
        others.fold(0, |bits, other| bits | 1 << (node - other))
    }

    /// Keeps the guesses that are wanted, and of them those whose parents are.
    pub fn retain(&mut self, wanted: impl Fn(usize) -> bool) {
        let mut places: Vec<Option<usize>> = Vec::with_capacity(self.len());
        let mut kept: Vec<Node> = Vec::with_capacity(self.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let parent = node.parent.map(|parent| places[parent]);
            let is_kept = wanted(at) && parent != Some(None);
            places.push(is_kept.then_some(kept.len()));
            if is_kept {
                kept.push(Node {
                    token: node.token,
                    parent: parent.flatten(),
                });
            }
        }
        self.nodes = kept;
    }

    /// What is accepted, given what each row chose: that of the last token of the answer, then those of the guesses.
    pub fn accept(&self, chosen: &[u32]) -> Accepted {
        let (mut path, mut tokens) = (Vec::new(), vec![chosen[0]]);
        let mut last = None;
        while let Some(next) = self.child(last, tokens[tokens.len() - 1]) {
            path.push(next);
            tokens.push(chosen[1 + next]);
            last = Some(next);
        }
        Accepted { path, tokens }
    }

    /// The guess of this token after a parent.
    fn child(&self, parent: Option<usize>, token: u32) -> Option<usize> {
        let mut nodes = self.nodes.iter();
        nodes.position(|node| *node == Node { token, parent })
    }
}

#[cfg(test)]
mod distribution;

#[cfg(test)]
mod tests {
    use super::*;

    /// `the mat .`, and `sofa` after `the`, and `a dog` instead of all.
    fn tree() -> Tree {
        let mut tree = Tree::chain(&[1, 2, 3]);
        tree.add(Some(0), &[4]);
        tree.add(None, &[5, 6]);
        tree
    }

    /// Fails when a guess is kept that was not chosen after its parent, or when what was chosen instead is lost.
    #[test]
    fn guesses_count_up_to_the_first_wrong_one() {
        let accept = |tree: &Tree, chosen: &[u32]| {
            let Accepted { path, tokens } = tree.accept(chosen);
            (path, tokens)
        };
        assert_eq!(accept(&Tree::default(), &[5]), (vec![], vec![5]));
        let chain = Tree::chain(&[5, 6, 7]);
        assert_eq!(
            accept(&chain, &[5, 6, 7, 8]),
            (vec![0, 1, 2], vec![5, 6, 7, 8])
        );
        assert_eq!(accept(&chain, &[5, 9, 7, 8]), (vec![0], vec![5, 9]));
        assert_eq!(accept(&chain, &[4, 6, 7, 8]), (vec![], vec![4]));
        // Rows: last token, 1 2 3, 4, 5 6.
        let tree = tree();
        assert_eq!(
            accept(&tree, &[1, 4, 9, 9, 7, 9, 9]),
            (vec![0, 3], vec![1, 4, 7])
        );
        assert_eq!(
            accept(&tree, &[5, 9, 9, 9, 9, 6, 8]),
            (vec![4, 5], vec![5, 6, 8])
        );
        // 2 is guessed after 1 only.
        assert_eq!(accept(&tree, &[2, 9, 9, 9, 9, 9, 9]), (vec![], vec![2]));
    }

    /// Fails when a row would see another branch, or not its own.
    #[test]
    fn a_guess_sees_its_own_branch() {
        let tree = tree();
        let hidden: Vec<u32> = (0..tree.len()).map(|node| tree.hidden(node)).collect();
        assert_eq!(hidden, [0, 0, 0, 0b110, 0b1_1110, 0b11_1100]);
        let depths: Vec<usize> = (0..tree.len()).map(|node| tree.depth(node)).collect();
        assert_eq!(depths, [0, 1, 2, 1, 0, 1]);
        assert_eq!(tree.branches(), [vec![0, 1, 2], vec![0, 3], vec![4, 5]]);
        assert!(tree.is_branched() && !Tree::chain(&[1, 2]).is_branched());
    }

    /// Fails when a guess stays without the one that it follows.
    #[test]
    fn what_follows_a_guess_goes_with_it() {
        let mut cut = tree();
        cut.retain(|node| node != 1);
        let mut wanted = Tree::chain(&[1, 4]);
        wanted.add(None, &[5, 6]);
        assert_eq!(cut, wanted);
        cut.retain(|node| node != 0);
        assert_eq!(cut, Tree::chain(&[5, 6]));
    }
}
